"""How fast, how tight and how honest it all is."""
