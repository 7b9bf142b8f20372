"""TLS of a client, by certificates in PEM files, which are read before anybody is spoken to."""

from __future__ import annotations

import ssl

import msgspec

from ascar.errors import InputError


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files of TLS, in PEM.

    Attributes:
        ca: certificates of who signs servers' certificates; None: those that the system trusts.
        certificate: our own, for servers that ask for one.
        key: the private key of our own certificate.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    def check(self) -> None:
        """See that a certificate has its key.

        Raises:
            InputError: one is there without the other.
        """
        if (self.certificate is None) != (self.key is None):
            raise InputError("tls.certificate and tls.key: give both or none")

    def context(self) -> ssl.SSLContext:
        """What a connection to a server needs.

        Raises:
            InputError: a file cannot be read or is no certificate.
        """
        try:
            context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.ca)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, password=_no_passphrase)
        except OSError as error:  # an SSLError is one
            files = ", ".join(name for name in (self.ca, self.certificate, self.key) if name is not None)
            raise InputError(
                f"tls: {files}: {error.strerror or error}; name PEM files that can be read"
            ) from None
        return context


def _no_passphrase() -> str:
    raise InputError("tls.key: has a passphrase; ascar cannot type it; name a key without one")
