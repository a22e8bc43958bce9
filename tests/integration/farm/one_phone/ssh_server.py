"""A server of ssh on this machine in a process of its own: `python ssh_server.py FOLDER` prints its port.

FOLDER has `key`, the only one that may enter and the server's own.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncssh


async def _run(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run the command as a login shell does."""
    assert process.command
    pipe = asyncio.subprocess.PIPE
    run = await asyncio.create_subprocess_shell(process.command, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/")
    await process.redirect(run.stdin, run.stdout, run.stderr)
    status = await run.wait()
    await process.stdout.drain()  # until all of it was sent
    await process.stderr.drain()
    process.exit(status)


async def _serve(folder: Path) -> None:
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[str(folder / "key")], authorized_client_keys=str(folder / "key.pub"),
        process_factory=_run, encoding=None,
    )  # fmt: skip
    print(server.get_port(), flush=True)
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
