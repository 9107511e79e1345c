"""Who decides: one folder per kind of actor. Pure but for actor.py, part.py and effects.py."""
