"""Who decides: one folder per kind of actor. Pure but for each kind's actor.py and effects.py."""
