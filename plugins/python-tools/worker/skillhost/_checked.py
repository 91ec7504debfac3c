"""Imports from a skill that requires a signature: finds only verified files, and runs only the verified bytes.

Python's own finders read the disk, where a name may lead to another file by now, and use compiled files next to a source.
These finders know only the verified names.
"""

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import unicodedata


class Untrusted(ImportError):
    """A file that was not verified or has changed."""


class CheckedFiles:
    """The files of a folder by relative path, with their verified digests."""

    def __init__(self, folder, digests, sources):
        self._folders = [os.path.normpath(folder)]
        # Code may resolve its own path to the same files.
        real = os.path.realpath(folder)
        if real not in self._folders:
            self._folders.append(real)
        self._digests = digests
        self._sources = sources
        self._parents = {"/".join(path.split("/")[:depth]) for path in digests for depth in range(1, path.count("/") + 1)}
        self._outside = [os.path.normpath(path) for path in sys.path if path]

    def install(self):
        sys.path_hooks.insert(0, self._finder)
        sys.path_importer_cache.clear()

    def relative(self, path):
        """The path with forward slashes; empty for the folder itself, None for a path outside."""
        full = os.path.normpath(os.path.abspath(path))
        for folder in self._folders:
            if full == folder:
                return ""
            if full.startswith(folder + os.sep):
                return unicodedata.normalize("NFC", full[len(folder) + 1:].replace(os.sep, "/"))
        return None

    def is_file(self, path):
        return self.relative(path) in self._digests

    def is_folder(self, path):
        return self.relative(path) in self._parents

    def data(self, path):
        name = self.relative(path)
        if name not in self._digests:
            raise Untrusted(f"{path} is not among the files that were signed, so it is not used", path=path)
        if path in self._sources:
            return self._sources[path].encode("latin-1")
        with open(path, "rb") as file:
            data = file.read()
        if "sha256:" + hashlib.sha256(data).hexdigest() != self._digests[name]:
            raise Untrusted(f"{path} has changed since the skill was signed, so it is not used", path=path)
        self._sources[path] = data.decode("latin-1")
        return data

    def loader(self, name, file):
        return _CheckedLoader(name, file, self)

    def _finder(self, path):
        if self.relative(path) is not None:
            return _CheckedFinder(path, self)
        full = os.path.normpath(os.path.abspath(path))
        # The paths of Python itself and its packages. A path that is added later may be another name of the folder.
        if any(full == known or full.startswith(known + os.sep) for known in self._outside):
            raise ImportError(f"{path} is for another finder")
        return _NothingFinder()


class _CheckedFinder(importlib.abc.PathEntryFinder):
    def __init__(self, path, files):
        self._path = path
        self._files = files

    def find_spec(self, fullname, target=None):
        base = os.path.join(self._path, fullname.rpartition(".")[2])
        init = os.path.join(base, "__init__.py")
        if self._files.is_file(init):
            return self._spec(fullname, init, [base])
        if self._files.is_file(base + ".py"):
            return self._spec(fullname, base + ".py", None)
        if self._files.is_folder(base):
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [base]
            return spec
        return None

    def invalidate_caches(self):
        """Verified files do not change."""

    def _spec(self, name, file, locations):
        loader = self._files.loader(name, file)
        return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=locations)


class _NothingFinder(importlib.abc.PathEntryFinder):
    def find_spec(self, fullname, target=None):
        return None

    def invalidate_caches(self):
        """It has no information."""


class _CheckedLoader(importlib.abc.SourceLoader):
    """Compiles the source each time and never uses a compiled file next to it."""

    def __init__(self, name, file, files):
        self.name = name
        self.path = file
        self._files = files

    def get_filename(self, fullname):
        return self.path

    def get_data(self, path):
        return self._files.data(path)
