"""What a merchant tells before a launch: the questions, their form, and what the shop would not allow."""
