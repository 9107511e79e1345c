"""What people do on the processor's own pages: pay a session, change a subscription."""
