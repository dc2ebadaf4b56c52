"""The promises of tasks and methods, for authors of plug-ins and for the conformance tests."""
