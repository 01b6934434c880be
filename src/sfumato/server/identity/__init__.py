"""Who somebody is: people, passwords, sessions, tokens for programs, and the sign-in of an institution."""
