"""The pages of the service, one module for each area; each is found by itself (:mod:`sfumato.server.app`)."""
