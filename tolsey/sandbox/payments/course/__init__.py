"""What happens without a request: time passes, payments end, banks come back."""
