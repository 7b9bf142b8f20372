"""Messages between processes and nodes, over NATS: who may connect where, what a message is, who answers."""

from ascar.messaging.accounts import controller_user, manager_user, session_users
from ascar.messaging.answers import RequestRefused
from ascar.messaging.blocking import Background
from ascar.messaging.bound import bound
from ascar.messaging.link import Counts, Link
from ascar.messaging.message import MESSAGE_BYTES_MAX, Message, Refusal, decode, encode
from ascar.messaging.place import find_settings, runtime_directory
from ascar.messaging.server import MessageServer
from ascar.messaging.server_config import ServerLimits, User
from ascar.messaging.service_manager import ServiceManager
from ascar.messaging.settings import Settings, read_settings, settings_from_environment
from ascar.messaging.stop import run_interruptible, run_until_asked
from ascar.messaging.subjects import subject, token
from ascar.messaging.tasks import end_tasks
from ascar.tls import Tls

__all__ = [
    "MESSAGE_BYTES_MAX",
    "Background",
    "Counts",
    "Link",
    "Message",
    "MessageServer",
    "Refusal",
    "RequestRefused",
    "ServerLimits",
    "ServiceManager",
    "Settings",
    "Tls",
    "User",
    "bound",
    "controller_user",
    "decode",
    "encode",
    "end_tasks",
    "find_settings",
    "manager_user",
    "read_settings",
    "run_interruptible",
    "run_until_asked",
    "runtime_directory",
    "session_users",
    "settings_from_environment",
    "subject",
    "token",
]
