"""What operators type, beside `serve`: a module for each command that does more than one line can, a folder for the doctor."""
