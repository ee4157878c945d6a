"""A pytest plugin that lets the kit of 0.3 read `host:port` as the address of gRPC, as the gRPC libraries do.

The kit parses the address as a URL and looks for a server called `None` where it has no scheme.
"""

from tck.transport.grpc_client import GRPCClient

_init = GRPCClient.__init__


def _init_with_scheme(self, base_url, *args, **kwargs):
    _init(self, base_url if "://" in base_url else f"http://{base_url}", *args, **kwargs)


GRPCClient.__init__ = _init_with_scheme
