"""Models of bodies, answers and tools are built at their first use: here all of them are."""

from collections.abc import Iterator

from pydantic import BaseModel

from tolsey.http.blueprints import BLUEPRINTS


def models(kind: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    for one in kind.__subclasses__():
        yield one
        yield from models(one)


def test_every_model_can_be_built() -> None:
    assert BLUEPRINTS
    ours = [one for one in models() if one.__module__.startswith("tolsey.")]
    assert len(ours) > 400
    for one in ours:
        one.model_rebuild()
        assert one.__pydantic_complete__, one
