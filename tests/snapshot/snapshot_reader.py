"""A second reader of snapshots, written from docs/formats/snapshot.md alone: it shares no code with Kerncap's.

It trusts nothing and refuses by Damage. Only the libraries for zstd and XXH3 are the distribution's, by ctypes.
"""

import ctypes
import ctypes.util
import hashlib
import json
import pathlib
import struct

CHUNK = 65536


class Damage(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Damage(text)


class _Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash"))
_xxhash.XXH3_128bits.restype = _Hash128
_xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
_zstd.ZSTD_decompress.restype = ctypes.c_size_t
_zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def xxh3_128(data):
    """(high, low)"""
    result = _xxhash.XXH3_128bits(bytes(data), len(data))
    return result.high, result.low


def unzstd(data, size):
    target = ctypes.create_string_buffer(size)
    got = _zstd.ZSTD_decompress(target, size, bytes(data), len(data))
    require(got == size, "a chunk does not decompress")
    return target.raw


def number(text):
    """A number, or an address as "0x..."."""
    return int(text, 16) if isinstance(text, str) else text


class Snapshot:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        try:
            text = (self.folder / "manifest.json").read_text(encoding="utf-8")
            self.manifest = json.loads(text)
        except (OSError, ValueError) as error:
            raise Damage(f"manifest.json: {error}")
        require(self.manifest.get("schema") in ("kerncap.snapshot/1", "kerncap.snapshot/2"), "another schema")
        require(self.manifest["chunk_size"] == CHUNK, "another chunk size")
        sealed = dict(self.manifest)
        checksum = sealed.pop("checksum", "")
        compact = json.dumps(sealed, separators=(",", ":"), ensure_ascii=False)
        high, low = xxh3_128(compact.encode("utf-8"))
        require(f"{high:016x}{low:016x}" == checksum, "manifest.json: its checksum differs")
        self._read_index()
        self.dispatches = self.manifest["dispatches"]
        self._pages = [self._read_pages(d) for d in self.dispatches]

    def _file(self, name):
        require(not name.startswith("/") and ".." not in name.split("/"), f"'{name}' leaves the folder")
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise Damage(str(error))

    def _headed(self, name, magic):
        """The three numbers of a binary file's header that matter, and what follows it."""
        data = self._file(name)
        require(len(data) >= 48, f"{name}: too short")
        found, version, chunk, first, second, high, low = struct.unpack_from("<8sIIQQQQ", data)
        require(found == magic and version == 1 and chunk == CHUNK, f"{name}: header")
        require((high, low) == xxh3_128(data[48:]), f"{name}: checksum")
        return first, second, data

    def _read_index(self):
        files, chunks, data = self._headed("chunks/index.bin", b"KCAPIDX1")
        require(len(data) == 48 + 8 * files + 40 * chunks, "index: size")
        names = self.manifest["chunk_files"]
        require(len(names) == files, "index: number of files")
        self.packs = [self._file(name) for name in names]
        sizes = struct.unpack_from(f"<{files}Q", data, 48)
        require(list(sizes) == [len(p) for p in self.packs], "a pack file has another size")
        self.chunks = []
        for i in range(chunks):
            entry = struct.unpack_from("<QQQIIIB3x", data, 48 + 8 * files + 40 * i)
            high, low, offset, file, stored, raw, codec = entry
            require(file < files and offset + stored <= sizes[file], "index: a chunk outside of its file")
            require(0 < stored <= raw <= CHUNK and codec in (0, 1) and (codec or stored == raw), "index: sizes")
            self.chunks.append(entry)

    def _read_pages(self, dispatch):
        name = dispatch["pages_file"]
        regions, changes, data = self._headed(name, b"KCAPPAG1")
        require(regions == len(dispatch["regions"]), f"{name}: number of regions")
        at = 48
        table = []
        for region in dispatch["regions"]:
            address, size, first, count = struct.unpack_from("<QQQQ", data, at)
            require((address, size) == (number(region["address"]), region["size"]), f"{name}: another region")
            table.append((size, first, count))
            at += 32
        before = []
        for size, _, _ in table:
            count = -(-size // CHUNK)
            before.append(struct.unpack_from(f"<{count}I", data, at))
            at += 4 * count
        require(len(data) == at + 8 * changes, f"{name}: size")
        all_changes = [struct.unpack_from("<II", data, at + 8 * i) for i in range(changes)]
        result, expected = [], 0
        for ids, (size, first, count) in zip(before, table):
            require(first == expected and first + count <= changes, f"{name}: changes")
            mine = all_changes[first:first + count]
            require(all(a < b for (a, _), (b, _) in zip(mine, mine[1:])), f"{name}: order of changes")
            expected += count
            after = list(ids)
            for chunk, identity in mine:
                require(chunk < len(after), f"{name}: a change outside of its region")
                after[chunk] = identity
            for identities in (ids, after):
                for position, identity in enumerate(identities):
                    length = min(CHUNK, size - position * CHUNK)
                    require(identity == 0 or (identity <= len(self.chunks) and self.chunks[identity - 1][5] == length),
                            f"{name}: a chunk of another size")
            result.append((ids, after))
        require(expected == changes, f"{name}: changes of no region")
        return result

    def chunk(self, identity, length):
        if identity == 0:
            return bytes(length)
        high, low, offset, file, stored, raw, codec = self.chunks[identity - 1]
        data = self.packs[file][offset:offset + stored]
        if codec == 1:
            data = unzstd(data, raw)
        require(xxh3_128(data) == (high, low), f"chunk {identity}: checksum")
        return data

    def memory(self, dispatch, region, after=False):
        """The region's bytes before or after the kernel."""
        size = self.dispatches[dispatch]["regions"][region]["size"]
        ids = self._pages[dispatch][region][1 if after else 0]
        return b"".join(self.chunk(i, min(CHUNK, size - n * CHUNK)) for n, i in enumerate(ids))

    def kernarg(self, dispatch):
        d = self.dispatches[dispatch]
        data = self._file(d["kernarg_file"])
        high, low = xxh3_128(data)
        require(f"{high:016x}{low:016x}" == d["kernarg_checksum"], "kernarg: checksum")
        return data

    def code(self, digest):
        data = self._file(f"code/{digest}.hsaco")
        require(hashlib.sha256(data).hexdigest() == digest, "code: digest")
        return data
