# SPDX-License-Identifier: MIT
"""folding-fs.py DIRECTORY: mounts a read-only file system there that folds case, says "mounted", serves.

There is one file in it, which is found as "name" and "NAME" and listed once. Ends with its standard input.
"""
import ctypes
import os
import select
import struct
import sys

LOOKUP, GETATTR, STATFS, INIT, OPENDIR, READDIR, RELEASEDIR = 1, 3, 17, 26, 27, 28, 29
ENOENT, ENOSYS = 2, 38


def attributes(node):
    mode, links = (0o40755, 2) if node == 1 else (0o100644, 1)
    return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, links, os.getuid(), os.getgid(), 0, 4096, 0)


def answer(opcode, node, body):
    """The body, or an error number."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8)
    if opcode == GETATTR:
        return struct.pack("<Q2I", 9, 0, 0) + attributes(node)
    if opcode == LOOKUP:
        if body.rstrip(b"\0").lower() != b"name":
            return ENOENT
        return struct.pack("<4Q2I", 2, 0, 9, 9, 0, 0) + attributes(2)
    if opcode == OPENDIR:
        return struct.pack("<Q2I", 0, 0, 0)
    if opcode == READDIR:
        return b"" if struct.unpack_from("<2Q", body)[1] else struct.pack("<2Q2I8s", 2, 1, 4, 8, b"name")
    if opcode in (RELEASEDIR, STATFS):
        return bytes(80) if opcode == STATFS else b""
    return ENOSYS


def main():
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other".encode()
    if ctypes.CDLL(None, use_errno=True).mount(b"folding", sys.argv[1].encode(), b"fuse", 1, options):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("mounted", flush=True)
    while True:
        ready = select.select([fd, 0], [], [])[0]
        if 0 in ready:
            return
        request = os.read(fd, 1 << 17)
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        if opcode in (2, 42, 36):
            continue  # these are not answered
        said = answer(opcode, node, request[40:])
        error, data = (-said, b"") if isinstance(said, int) else (0, said)
        os.write(fd, struct.pack("<IiQ", 16 + len(data), error, unique) + data)


main()
