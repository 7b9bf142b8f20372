"""Certificates that tests make when they run: a CA, what it signs, and what nobody should believe."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_LOCAL = "DNS:localhost,IP:127.0.0.1"


@dataclass(frozen=True)
class Certificate:
    """A certificate, its key, and the certificate of who signed it."""

    path: Path
    key: Path
    ca: Path

    def folder(self, path: Path, side: str) -> Path:
        """A folder with the names that libnbd, nbdkit and QEMU look for.

        Args:
            path: the folder, which is made.
            side: client or server.
        """
        path.mkdir()
        files = {f"{side}-cert": self.path, f"{side}-key": self.key, "ca-cert": self.ca}
        for name, file in files.items():
            (path / f"{name}.pem").write_bytes(file.read_bytes())
        return path


class Authority:
    """A CA.

    Args:
        folder: of all its files.
        name: of its own: NAME.pem and NAME.key.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._name = name
        self.path = folder / f"{name}.pem"
        self._openssl(
            "req", "-x509", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "1",
            "-subj", f"/CN={name}",
        )  # fmt: skip

    def issue(self, name: str, usage: str, names: str = _LOCAL, days: int = 1) -> Certificate:
        """NAME.pem and NAME.key.

        Args:
            name: of the files, and in the certificate.
            usage: serverAuth or clientAuth.
            names: for whom it is, as openssl writes alternative names.
            days: until its end; less than 0: it is over.
        """
        extensions = self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage={usage}\n")
        self._openssl(
            "req", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"
        )
        self._openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", f"{self._name}.pem", "-CAkey", f"{self._name}.key",
            "-CAcreateserial", "-out", f"{name}.pem", "-days", str(days), "-extfile", f"{name}.ext",
        )  # fmt: skip
        return Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key", self.path)

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True)
