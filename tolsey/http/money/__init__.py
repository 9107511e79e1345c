"""What people do about money, for the API and the pages alike: pay, change plans, be paid out."""
