from sfumato.streams.meters import *  # noqa
from sfumato.streams.readers import *  # noqa
