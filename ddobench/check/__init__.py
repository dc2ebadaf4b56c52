"""What tasks and methods promise, each promise once: for authors of plug-ins and for our tests."""
