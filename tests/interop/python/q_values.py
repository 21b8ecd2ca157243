"""Messages of the q IPC protocol through qpython3: each line of standard input is one, in hexadecimal.

Each is answered by a line: the message as qpython3 writes again what it read, in hexadecimal; `read TYPE` for what it reads and
cannot write; `error TEXT` for what it raises, an error that the message is too.
"""

import io
import sys

from qpython.qcollection import QDictionary, QKeyedTable
from qpython.qreader import QReader
from qpython.qtype import QFunction
from qpython.qwriter import QWriter


def written(value):
    """The value in a message of the library's own."""
    return QWriter(None, protocol_version=3).write(value, 0).hex()


def answer(line):
    try:
        message = QReader(io.BytesIO(bytes.fromhex(line))).read()
    except Exception as error:
        return f"error {error}"
    try:
        return written(message.data)
    except Exception as error:
        kind = message.data.__class__.__name__
        if isinstance(message.data, (QFunction, list, QDictionary, QKeyedTable)):
            return f"read {kind}"
        return f"error cannot write {kind}: {error}"


for line in sys.stdin:
    print(answer(line.strip()), flush=True)
