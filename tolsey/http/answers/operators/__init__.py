"""Operations, jobs, actors and what went wrong, as operators are told of them."""
