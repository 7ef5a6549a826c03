"""The front end: text of programs to checked programs, and the messages that users get when text is wrong."""
