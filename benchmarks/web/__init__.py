"""What the page shows against what the command line prints, in a browser; how fast a drag is answered; screenshots."""
