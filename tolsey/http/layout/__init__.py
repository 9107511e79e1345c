"""How pages look to people: templates, forms, words, the stylesheet, and the page of all their parts."""
