"""A Hugging Face Hub for dataset repositories on loopback, of the standard library alone."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

ATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"
MAIN = "main"


class AbsentError(Exception):
    """Something that was asked for is not there; its text is what the Hub says in X-Error-Code."""


class RefusedError(Exception):
    """Something that the Hub does not do, with its HTTP status."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, {name.replace("_", "-"): text for name, text in headers.items()}


@dataclass(frozen=True)
class Commit:
    """A state of a repository: path → SHA-256 of the content."""

    sha: str
    parent: str | None
    title: str
    description: str
    files: Mapping[str, str]


@dataclass
class Repository:
    """One dataset repository."""

    name: str
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def commit_at(self, revision: str) -> Commit:
        """Return the commit of a branch, a tag or a SHA."""
        tagged = self.tags.get(revision, (revision, None))[0]
        sha = self.branches.get(revision, tagged)
        if sha not in self.commits:
            raise AbsentError("RevisionNotFound")
        return self.commits[sha]

    @property
    def head(self) -> Commit:
        """The newest commit of main."""
        return self.commits[self.branches[MAIN]]


class Store:
    """Every repository of a Hub, and every content that was sent to it."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.contents: dict[str, bytes] = {}
        self.sizes: dict[str, int] = {}
        self.xet_hashes: dict[str, str] = {}

    def repository(self, name: str) -> Repository:
        if name not in self.repositories:
            raise AbsentError("RepoNotFound")
        return self.repositories[name]

    def create(self, name: str, *, private: bool = False) -> Repository:
        """Make a repository, with the one file that the Hub puts into a new one."""
        if name in self.repositories:
            raise RefusedError(409, "You already created this dataset repo")
        self.repositories[name] = Repository(name, private)
        self.commit(name, {".gitattributes": ATTRIBUTES}, title="initial commit")
        return self.repositories[name]

    def keep(self, content: bytes) -> str:
        """Keep content and return its SHA-256."""
        sha256 = hashlib.sha256(content).hexdigest()
        self.contents[sha256], self.sizes[sha256] = content, len(content)
        return sha256

    def keep_elsewhere(self, sha256: str, size: int, xet_hash: str) -> None:
        """Know content that lies in a Xet store, as the Hub learns from that store."""
        self.sizes[sha256], self.xet_hashes[sha256] = size, xet_hash

    def commit(
        self,
        name: str,
        added: Mapping[str, bytes | str],
        deleted: tuple[str, ...] = (),
        *,
        title: str = "a commit",
        description: str = "",
        branch: str = MAIN,
        parent: str | None = None,
    ) -> Commit:
        """Add a commit to a branch."""
        repository = self.repository(name)
        head = repository.branches.get(branch)
        if parent is not None and parent != head:
            raise RefusedError(412, "A commit has happened since. Please refresh and try again.")
        files = dict(repository.commits[head].files) if head else {}
        for path in deleted:
            gone = [f for f in files if f == path or (path.endswith("/") and f.startswith(path))]
            if not gone:
                raise AbsentError("EntryNotFound")
            for file in gone:
                del files[file]
        files |= {p: c if isinstance(c, str) else self.keep(c) for p, c in added.items()}
        # As in git, what is committed, after what, and how it is called make a commit's name.
        text = json.dumps([len(repository.commits), head, title, description, sorted(files.items())])
        commit = Commit(hashlib.sha1(text.encode()).hexdigest(), head, title, description, files)  # noqa: S324
        repository.commits[commit.sha] = commit
        repository.branches[branch] = commit.sha
        return commit

    def tag(self, name: str, tag: str, revision: str, message: str | None = None) -> None:
        """Give a commit a tag; one that is there is not moved."""
        repository = self.repository(name)
        if tag in repository.tags:
            raise RefusedError(409, f"Tag reference exists already: {tag}")
        repository.tags[tag] = (repository.commit_at(revision).sha, message)

    def move_tag(self, name: str, tag: str, revision: str) -> None:
        """Point a tag elsewhere, as somebody with a git client can."""
        repository = self.repository(name)
        repository.tags[tag] = (repository.commit_at(revision).sha, repository.tags[tag][1])

    def untag(self, name: str, tag: str) -> None:
        """Remove a tag."""
        if self.repository(name).tags.pop(tag, None) is None:
            raise AbsentError("RevisionNotFound")

    def entry(self, path: str, sha256: str) -> dict[str, object]:
        """Return a file as the Hub lists it; what git keeps of a large file is a pointer."""
        size = self.sizes[sha256]
        if not is_large(path, size):
            return {"type": "file", "path": path, "size": size, "oid": blob_sha1(self.contents[sha256])}
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()
        lfs = {"oid": sha256, "size": size, "pointerSize": len(pointer)}
        entry = {"type": "file", "path": path, "size": size, "oid": blob_sha1(pointer), "lfs": lfs}
        return {**entry, "xetHash": self.xet_hashes[sha256]} if sha256 in self.xet_hashes else entry


def is_large(path: str, size: int) -> bool:
    """Whether the Hub keeps a file by LFS: Parquet always, anything else from ten megabytes on."""
    return path.endswith(".parquet") or size > 10_000_000


def blob_sha1(content: bytes) -> str:
    """Return the name that git gives to content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324 - git's own


Kind = Literal[
    "server_error",  # 503 instead of an answer
    "missing_file",  # 404, although the tree lists it
    "truncated_body",  # half of the body, and headers that say this is all of it
    "cut_body",  # half of the body, and then the connection ends
    "wrong_bytes",  # a body of the right length with one byte changed
    "hung_up",  # the connection ends without an answer
    "forbidden",  # 403
    "another_writer",  # somebody else commits just before this request is answered
    "leads_out",  # the ETag is a path that leads out of the cache
    "endless_body",  # a body that goes on after what was asked for, for 50 megabytes
    "silent",  # no answer, and the connection stays
    "dripping",  # a byte at a time, and never all
]


@dataclass
class Fault:
    """A fault and the requests that meet it."""

    kind: Kind  # what happens
    where: str  # pattern that is looked for in `METHOD /path`
    times: int | None = None  # how many requests meet it; all where it is None
    met: int = 0  # how many did

    def meets(self, request: str) -> bool:
        """Whether a request meets the fault, which counts it."""
        if self.met == self.times or not re.search(self.where, request):
            return False
        self.met += 1
        return True


REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
API = f"/api/datasets/{REPO}"
ENDLESS = 50_000_000


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or every body waits until its headers were acknowledged
    hub: Any  # set by the server

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

    def _serve(self) -> None:
        split = urlsplit(self.path)
        request = f"{self.command} {unquote(split.path)}"
        with self.hub.lock:
            self.hub.requests.append(request)
            self._fault = next((fault for fault in self.hub.faults if fault.meets(request)), None)
        self._query = {key: values[-1] for key, values in parse_qs(split.query).items()}
        try:
            if self.hub.is_gone or self._hits("hung_up"):
                self.close_connection = True
                return
            self._body = self._read()
            self._refuse()
            if self._hits("silent"):
                self.hub.ended.wait()
                self.close_connection = True
                return
            with self.hub.lock:
                self._route(split.path)
        except AbsentError as absent:
            code = str(absent)
            self._json({"error": code}, 404, {"X-Error-Code": code, "X-Error-Message": code})
        except RefusedError as refused:
            headers = {"X-Error-Message": str(refused), **refused.headers}
            self._json({"error": str(refused)}, refused.status, headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _hits(self, kind: str) -> bool:
        return self._fault is not None and self._fault.kind == kind

    def _refuse(self) -> None:
        if self._hits("server_error"):
            raise RefusedError(503, "Service Unavailable")
        if self._hits("forbidden"):
            raise RefusedError(403, "Forbidden: your token may not do this")

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _route(self, path: str) -> None:
        for method, pattern, answer in ROUTES:
            match = re.fullmatch(pattern, path)
            if method == self.command and match:
                parts: dict[str, Any] = {k: unquote(v) for k, v in match.groupdict().items() if v is not None}
                if "repo" in parts:
                    parts["repo"] = self._open(parts["repo"], writes=answer in WRITES)
                answer(self, **parts)
                return
        raise RefusedError(404, f"this Hub does not know {self.command} {path}")

    def _open(self, name: str, *, writes: bool) -> Repository:
        """Return a repository that may be seen by whoever asks; another is as if it were not there."""
        repository = self.hub.store.repositories.get(name)
        if not self._is_known and (writes or repository is None or repository.private):
            # Who does not say who they are is not told whether a repository is there.
            unknown = RefusedError(401, "Invalid username or password.", X_Error_Code="RepoNotFound")
            raise AbsentError("RepoNotFound") if "Authorization" in self.headers else unknown
        return self.hub.store.repository(name)

    @property
    def _is_known(self) -> bool:
        return self.hub.token is None or self.headers.get("Authorization") == f"Bearer {self.hub.token}"

    # Repositories

    def create(self) -> None:
        asked = json.loads(self._body)
        if not self._is_known:
            raise RefusedError(401, "Invalid username or password.")
        name = f"{asked.get('organization') or 'reader'}/{asked['name']}"
        is_private = bool(asked.get("private")) or asked.get("visibility") == "private"
        self.hub.store.create(name, private=is_private)
        self._json({"url": f"{self.hub.url}/datasets/{name}", "name": name})

    def info(self, repo: Repository, revision: str = "main") -> None:
        commit = repo.commit_at(revision)
        self._json(
            {
                "id": repo.name,
                "sha": commit.sha,
                "private": repo.private,
                "gated": False,
                "tags": [],
                "siblings": [{"rfilename": path} for path in sorted(commit.files)],
            }
        )

    def refs(self, repo: Repository) -> None:
        def rows(kind: str, refs: dict[str, str]) -> list[dict[str, str]]:
            return [{"name": n, "ref": f"refs/{kind}/{n}", "targetCommit": sha} for n, sha in refs.items()]

        tags = {name: sha for name, (sha, _) in repo.tags.items()}
        self._json({"branches": rows("heads", repo.branches), "converts": [], "tags": rows("tags", tags)})

    # Files

    def tree(self, repo: Repository, revision: str, path: str = "") -> None:
        commit, below = repo.commit_at(revision), f"{path}/" if path else ""
        names = [name for name in sorted(commit.files) if name.startswith(below)]
        folders = {
            name[: m.start()] for name in names for m in re.finditer("/", name) if m.start() >= len(below)
        }
        paths = sorted({*names, *folders})
        if self._query.get("recursive", "").lower() != "true":
            paths = [path for path in paths if "/" not in path[len(below) :]]
        entries = [self._entry(commit, path) for path in paths]
        first = int(self._query.get("cursor", 0))
        page = entries[first : first + self.hub.page]
        headers = {}
        if first + self.hub.page < len(entries):
            query = urlencode({**self._query, "cursor": first + self.hub.page})
            headers["Link"] = f'<{self.hub.url}{urlsplit(self.path).path}?{query}>; rel="next"'
        self._json(page, headers=headers)

    def paths_info(self, repo: Repository, revision: str) -> None:
        commit = repo.commit_at(revision)
        if "json" in self.headers.get("Content-Type", ""):
            paths = json.loads(self._body)["paths"]
        else:
            paths = parse_qs(self._body.decode()).get("paths", [])
        folders = {path for path in paths if any(name.startswith(f"{path}/") for name in commit.files)}
        self._json([self._entry(commit, path) for path in paths if path in folders | commit.files.keys()])

    def resolve(self, repo: Repository, revision: str, path: str) -> None:
        commit = repo.commit_at(revision)
        headers = {"X-Repo-Commit": commit.sha}
        if path not in commit.files or self._hits("missing_file"):
            raise AbsentError("EntryNotFound")
        sha256 = commit.files[path]
        entry = self._entry(commit, path)
        headers |= {"ETag": f'"{self._oid(commit, path)}"', "Accept-Ranges": "bytes"}
        if "lfs" in entry:
            headers |= {"X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(entry["size"])}
        if self._hits("leads_out"):
            out = "../../../outside"
            headers |= {"ETag": f'"{out}"', "X-Linked-Etag": f'"{out}"'}
        if "xetHash" in entry:
            headers["X-Xet-Hash"] = str(entry["xetHash"])
            token = f"{self.hub.url}/api/datasets/{repo.name}/xet-read-token/{commit.sha}"
            headers |= {"X-Xet-Refresh-Route": token, "Link": f'<{token}>; rel="xet-auth"'}
        self._content(self.hub.store.contents.get(sha256, b""), headers)

    def _entry(self, commit: Commit, path: str) -> dict[str, object]:
        """Return a file or a folder as the Hub lists it."""
        if path in commit.files:
            return self.hub.store.entry(path, commit.files[path])
        return {"type": "directory", "path": path, "oid": blob_sha1(path.encode()), "size": 0}

    def _oid(self, commit: Commit, path: str) -> object:
        """Return the SHA-256 of a large file, git's name for any other, and None where there is none."""
        entry = self._entry(commit, path) if path in commit.files else {"oid": None}
        return commit.files[path] if "lfs" in entry else entry["oid"]

    # Writing

    def validate_yaml(self) -> None:
        is_card = json.loads(self._body)["content"].startswith("---\n")
        warning = {"message": "empty or missing yaml metadata in repo card"}
        self._json({"errors": [], "warnings": [] if is_card else [warning]})

    def preupload(self, repo: Repository, revision: str) -> None:
        head = repo.commit_at(revision)
        files = []
        for asked in json.loads(self._body)["files"]:
            path, mode = asked["path"], "lfs" if is_large(asked["path"], asked["size"]) else "regular"
            files.append(
                {"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": self._oid(head, path)}
            )
        self._json({"files": files})

    def batch(self, repo: Repository) -> None:
        objects: list[dict[str, Any]] = []
        for asked in json.loads(self._body)["objects"]:
            known = asked["oid"] in self.hub.store.contents
            upload = {"href": f"{self.hub.url}/lfs/{repo.name}/{asked['oid']}", "header": {}}
            objects.append({**asked} if known else {**asked, "actions": {"upload": upload}})
        self._json({"transfer": "basic", "objects": objects})

    def put(self, repo: Repository, oid: str) -> None:  # noqa: ARG002 - whoever has the address may write
        if self.hub.store.keep(self._body) != oid:
            raise RefusedError(400, "the content is not what its name says")
        self._json({})

    def commit(self, repo: Repository, revision: str) -> None:
        if self._hits("another_writer"):
            self.hub.store.commit(repo.name, {"NOTES.txt": b"somebody was here\n"}, title="another writer")
        lines = [json.loads(line) for line in self._body.splitlines() if line.strip()]
        header, added, deleted = lines[0]["value"], {}, []
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                added[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.store.sizes:
                    raise RefusedError(400, f"the content of {value['path']} was not sent")
                added[value["path"]] = value["oid"]
            else:
                deleted.append(value["path"] + "/" * (line["key"] == "deletedFolder"))
        made = self.hub.store.commit(
            repo.name,
            added,
            tuple(deleted),
            title=header["summary"],
            description=header.get("description", ""),
            branch=revision,
            parent=header.get("parentCommit"),
        )
        url = f"{self.hub.url}/datasets/{repo.name}/commit/{made.sha}"
        self._json({"success": True, "commitOid": made.sha, "commitUrl": url, "hookOutput": ""})

    def xet_token(self, repo: Repository, revision: str) -> None:  # noqa: ARG002 - one store for all
        """Say where the Xet store is; only the Hub's own Xet client can speak with one."""
        if self.hub.cas is None:
            raise RefusedError(404, "this Hub keeps large files by LFS")
        url, expires = f"local://{self.hub.cas}", "4102444800"
        headers = {"X-Xet-Cas-Url": url, "X-Xet-Access-Token": "fixture", "X-Xet-Token-Expiration": expires}
        self._json({"casUrl": url, "accessToken": "fixture", "exp": int(expires)}, headers=headers)

    def tag(self, repo: Repository, revision: str) -> None:
        asked = json.loads(self._body)
        self.hub.store.tag(repo.name, asked["tag"], revision, asked.get("message"))
        self._json({})

    # Answers

    def _json(self, document: object, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        self._send(status, body, {"Content-Type": "application/json", **(headers or {})})

    def _content(self, content: bytes, headers: dict[str, str]) -> None:
        """Answer with content or the range of it that was asked for, or with what a fault makes of it."""
        first, last, status = 0, len(content), 200
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked and (asked[1] or asked[2]):
            first = int(asked[1]) if asked[1] else max(0, last - int(asked[2]))
            last = min(last, int(asked[2]) + 1) if asked[1] and asked[2] else last
            if first >= max(1, len(content)):
                self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                return
            status, headers = 206, {**headers, "Content-Range": f"bytes {first}-{last - 1}/{len(content)}"}
        body = content[first:last]
        if self._hits("truncated_body"):
            body = body[: len(body) // 2]
        if self._hits("wrong_bytes"):
            body = body[:-1] + bytes([body[-1] ^ 1])
        self._send(status, body, {"Content-Type": "application/octet-stream", **headers})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        if self._hits("endless_body"):
            body += bytes(ENDLESS)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self._hits("dripping"):
            while not self.hub.ended.wait(0.05):
                self.wfile.write(b" ")
            return
        if self._hits("cut_body"):
            body, self.close_connection = body[: len(body) // 2], True
        for first in range(0, len(body), 2**16):
            self.wfile.write(body[first : first + 2**16])
            self.hub.sent += len(body[first : first + 2**16])


REVISION = "(?P<revision>[^/]+)"
PATH = "(?P<path>.+)"
ROUTES: tuple[tuple[str, str, Callable[..., None]], ...] = (
    ("POST", "/api/repos/create", Handler.create),
    ("POST", "/api/validate-yaml", Handler.validate_yaml),
    ("GET", API, Handler.info),
    ("GET", f"{API}/revision/{REVISION}", Handler.info),
    ("GET", f"{API}/refs", Handler.refs),
    ("GET", f"{API}/tree/{REVISION}(?:/{PATH})?", Handler.tree),
    ("POST", f"{API}/paths-info/{REVISION}", Handler.paths_info),
    ("HEAD", f"/datasets/{REPO}/resolve/{REVISION}/{PATH}", Handler.resolve),
    ("GET", f"/datasets/{REPO}/resolve/{REVISION}/{PATH}", Handler.resolve),
    ("POST", f"{API}/preupload/{REVISION}", Handler.preupload),
    ("POST", rf"/datasets/{REPO}\.git/info/lfs/objects/batch", Handler.batch),
    ("PUT", f"/lfs/{REPO}/(?P<oid>[0-9a-f]+)", Handler.put),
    ("POST", f"{API}/commit/{REVISION}", Handler.commit),
    ("GET", f"{API}/xet-(?:read|write)-token/{REVISION}", Handler.xet_token),
    ("POST", f"{API}/tag/{REVISION}", Handler.tag),
)
WRITES = (Handler.preupload, Handler.batch, Handler.commit, Handler.tag)


class FixtureHub:
    """A Hub that listens on loopback as long as it is entered."""

    def __init__(self, *, token: str | None = None, cas: Path | None = None, page: int = 50) -> None:
        self.store = Store()
        self.token = token  # what a writer, or a reader of a private repository, has to show
        self.cas = cas  # folder of a local Xet store that files are kept in instead of LFS
        self.page = page  # entries of a page of a tree
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.lock = threading.RLock()
        self.is_gone = False
        self.ended = threading.Event()
        self.sent = 0
        handler = type("BoundHandler", (Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening: from now on nobody is there, nor at the end of a connection that was kept."""
        self.is_gone = True
        self.ended.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def fail(self, kind: Kind, where: str, times: int | None = None) -> Fault:
        """Switch a fault on for requests whose `METHOD /path` has the pattern."""
        fault = Fault(kind, where, times)
        self.faults.append(fault)
        return fault

    def mend(self) -> None:
        """Switch every fault off."""
        self.faults.clear()

    def asked(self, pattern: str) -> list[str]:
        """Return the requests so far whose `METHOD /path` has a pattern."""
        probe = Fault("hung_up", pattern)
        return [request for request in self.requests if probe.meets(request)]

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables with which a process meets this Hub, and nothing of the machine's own."""
        home = folder / "hf"
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_ASSETS_CACHE": str(home / "assets"),
            "HF_DATASETS_CACHE": str(home / "datasets"),
            "HF_TOKEN": self.token or "",
            "HF_TOKEN_PATH": str(home / "token"),
            "HF_HUB_DISABLE_XET": "1" if self.cas is None else "0",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
