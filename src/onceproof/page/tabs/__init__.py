"""The tabs of the page: a router each, which says what is answered at each address."""
