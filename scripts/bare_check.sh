#!/usr/bin/env bash
# Both commands of the README on a bare machine: a fresh clone in an empty folder, without the public datasets beside
# it, and nothing on PATH but Python, make and the core utilities. What needs a browser, Java, PostgreSQL or fonts must
# be skipped with its reason.
#
#   scripts/bare_check.sh             make run and make test
#   scripts/bare_check.sh run         make run alone
#
# Where mounts may be made (as root), folders in which a program is looked for by its full path are hidden as well.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
targets=("$@")
[ $# -gt 0 ] || targets=(run test)
hidden=(/usr/lib/postgresql /usr/lib/jvm /usr/lib/chromium /usr/share/fonts /usr/local/share/fonts)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/home" "$folder/alone"
git clone --quiet "$here" "$folder/alone/sfumato"

python=$(python3 -c 'import sys; print(sys.executable)')
utilities="basename cat chmod cp cut date dirname echo env expr false head id ln ls mkdir mktemp mv nproc pwd readlink
realpath rm rmdir sha256sum sleep sort stat tail tee test touch tr true uname uniq wc"
ln -s "$python" "$folder/bin/python3"
for program in make sh $utilities; do
  path=$(type -P "$program") && ln -s "$path" "$folder/bin/$program"
done

# An empty home and no variable but these; what pip was told about its index and certificates it is told here too.
settings=(HOME="$folder/home" PATH="$folder/bin" LANG=C.UTF-8 PIP_CACHE_DIR="$(python3 -m pip cache dir)")
user_file=${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf
[ ! -e "$user_file" ] || settings+=(PIP_CONFIG_FILE="$user_file")
while IFS= read -r line; do settings+=("$line"); done < <(env | grep -E '^(PIP_|SSL_CERT_|REQUESTS_CA_BUNDLE=)' || true)

inside=()
if unshare --mount true 2>/dev/null; then
  script='for folder in '"${hidden[*]}"'; do [ ! -d "$folder" ] || mount -t tmpfs none "$folder"; done; exec "$@"'
  inside=(unshare --mount sh -c "$script" sh)
else
  echo "No mounts may be made here: only PATH hides what is installed."
fi

for target in "${targets[@]}"; do
  begun=$SECONDS
  echo "=== make $target, with Python, make and core utilities alone"
  (cd "$folder/alone/sfumato" && "${inside[@]}" "$(type -P env)" -i "${settings[@]}" "$folder/bin/make" "$target")
  echo "=== make $target: done in $((SECONDS - begun)) s"
done
