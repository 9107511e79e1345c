"""What all features share that answer people in a browser: templates, forms, words, and the answer itself."""
