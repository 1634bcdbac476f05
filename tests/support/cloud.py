"""A checkout whose launch scripts run against binaries that record calls and fail on request."""

import shlex
import shutil
import subprocess
import sys

from places import FIXTURES, ROOT

FAKES = FIXTURES / "fake_cloud"
# All that the scripts may call. Nothing else is on PATH, so that no real gcloud, nvidia-smi or
# Slurm can be reached, whatever this machine has.
TOOLS = (
  "awk basename bash cat chmod cksum cut date dirname env find git grep gzip head hostname mkdir "
  "mv nohup paste rm sed setsid sleep sort tail tar tee touch tr wc"
)
WHERE = ("--project=p", "--zone=us-central1-a")
AT = "--project=p --zone=us-central1-a"
TRAIN = ("--", "python", "-m", "t5x.train", "--gin_file=gin/sample/t5dst.gin")
IN_BUCKET = (*TRAIN, "--gin.MODEL_DIR='gs://b/m'")
QUOTA = (
  "ERROR: (gcloud.compute.tpus.tpu-vm.create) RESOURCE_EXHAUSTED: Quota limit "
  "'TPUV3sPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 0 in zone us-central1-a."
)
CAPACITY = 'ERROR: (gcloud) {"code": 8, "message": "There is no more capacity in the zone"}'


# What launch/environment.sh installs from; .venv/installed has their checksum.
_INSTALLED_FROM = ("pyproject.toml", "setup.py", "t5x_lite/pyproject.toml", "constraints.txt")


def copy_parts(repo):
  """Copies what the scripts read into the folder `repo`."""
  for folder in ("launch", "gin"):
    shutil.copytree(ROOT / folder, repo / folder)
  for file in _INSTALLED_FROM:
    (repo / file).parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / file, repo / file)


def mark_installed(repo):
  """Makes the scripts take the .venv of `repo` for complete."""
  text = b"".join((repo / file).read_bytes() for file in _INSTALLED_FROM)
  checksum = subprocess.run(["cksum"], input=text, capture_output=True, check=True).stdout
  (repo / ".venv/installed").write_bytes(checksum)


def write_checkout(top):
  """Writes a repository with what the scripts read, committed, and a folder of tools for PATH."""
  repo = top / "repo"
  copy_parts(repo)
  (repo / ".gitignore").write_text("/runs/\n.venv/\n")
  for command in ("init -q", "add .", "-c user.name=t -c user.email=t@t commit -q -m all"):
    subprocess.run(["git", "-C", repo, *command.split()], check=True)
  (top / "tools").mkdir()
  for tool in TOOLS.split():
    (top / "tools" / tool).symlink_to(shutil.which(tool))
  (top / "tools" / "python3.11").symlink_to(sys.executable)


class Cloud:
  """A checkout, the folder that holds its fake cloud, and methods to run scripts in it."""

  def __init__(self, checkout, folder):
    self.repo, self.state = folder / "repo", folder / "cloud"
    shutil.copytree(checkout / "repo", self.repo, symlinks=True)
    self.state.mkdir()
    (self.state / "calls").touch()
    (self.state / "rules").touch()
    self.path = [str(FAKES), str(checkout / "tools")]

  def rule(self, pattern, text="", *, code=1, times=1, node="", queue=""):
    with (self.state / "rules").open("a") as rules:
      rules.write(f"{times}|{pattern}|{code}|{node}|{queue}|{text}\n")

  def run(self, script, *words, stdin="", env=()):
    return subprocess.run(
      [self.repo / "launch" / script, *words],
      env={
        "PATH": ":".join(self.path),
        "HOME": str(self.state),
        "CLOUDSDK_CONFIG": str(self.state / "no_account"),
        "FAKE_CLOUD": str(self.state),
        "LAUNCH_POLL_SECONDS": "0",
        **dict(env),
      },
      capture_output=True,
      text=True,
      input=stdin,
      timeout=600,
    )

  def tpu(self, *words, **kw):
    return self.run("tpu_vm.sh", *words, **kw)

  @property
  def calls(self):
    return (self.state / "calls").read_text().splitlines()

  def verbs(self):
    """What gcloud was asked to change, in one word each."""
    names = {"worker.sh": None, "create": "create", "delete": "delete", "scp": "scp"}
    found = []
    for call in self.calls:
      words = shlex.split(call)
      if "ssh" in words:
        found.append(words[-1].split("worker.sh ")[1].split()[0])
      else:
        found += [name for word, name in names.items() if word in words]
    return found


def four_parts(done, code, *texts):
  """Checks for a four-part error on stderr that contains these texts."""
  assert done.returncode == code, done.stderr
  parts = [line.split(":")[0].strip() for line in done.stderr.splitlines()[-4:]]
  assert parts[1:] == ["expected", "available", "fix"], done.stderr
  for text in texts:
    assert text in done.stderr
  assert "unbound variable" not in done.stderr
