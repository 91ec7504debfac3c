/** Everyday commands of users and agents in a project with `src/`, `docs/`, `dist/`, `secret/` and a `package.json`. None reads `secret/`. */
export const everydayLines: readonly string[] = [
  ...`
ls
ls -la
ls src
ls -la src docs
ls -R src
ls -lah dist
ls *.json
ls src/*.ts
pwd
whoami
date
date +%Y-%m-%d
uname -a
which node
which -a python3
type git
echo hello
echo "hello world"
echo $HOME
echo $?
echo "exit: $?"
printf '%s\\n' done
cat package.json
cat src/a.ts
cat docs/readme.md src/a.ts
cat src/a.ts | head -20
cat package.json | grep name
cat package.json | jq .scripts
head -n 20 src/a.ts
head -50 docs/readme.md
tail -n 5 src/a.ts
tail -20 docs/readme.md
wc -l src/a.ts
wc -l src/*.ts
wc -l < src/a.ts
sort list.txt
sort -u list.txt | head
sort list.txt | uniq -c | sort -rn | head -10
cut -d: -f1 list.txt
tr a-z A-Z < list.txt
nl src/a.ts
stat package.json
file dist
du -sh dist
du -sh src
df -h
tree src
tree -L 2 src
basename src/a.ts .ts
dirname src/a.ts
realpath src
readlink -f src/a.ts
diff src/a.ts docs/readme.md
diff -u src/a.ts src/deep/b.ts
cmp src/a.ts docs/readme.md
md5sum package.json
sha256sum src/a.ts
base64 src/a.ts
xxd src/a.ts | head
grep TODO src/a.ts
grep -n export src/a.ts
grep -rn TODO src
grep -rn "export const" src docs
grep -rl TODO src
grep -rn --include='*.ts' TODO src
grep -c a src/a.ts
grep -E 'a|b' src/a.ts
grep -v '^#' docs/readme.md
grep -q export src/a.ts && echo yes
rg TODO src
rg -n "export const" src
rg -l TODO src docs
rg --type ts TODO src
find src -name '*.ts'
find src -type f
find docs -name '*.md' -type f
find src -maxdepth 1
find src -type f -name '*.ts' | wc -l
find src -name '*.ts' -newer package.json
sed -n 1,20p src/a.ts
sed -n '10,20p' src/a.ts
sed -i 's/foo/bar/g' src/a.ts
sed 's/a/b/' src/a.ts
awk '{print $1}' list.txt
awk -F: '{print $2}' list.txt
awk 'NR==1' src/a.ts
jq . package.json
jq -r .name package.json
jq '.scripts.test' package.json
mkdir -p dist/out
mkdir build
touch dist/x.txt
rm dist/x.txt
rm -rf dist
rm -f dist/*.js
rmdir build
cp src/a.ts dist/a.ts
cp -r src dist/src
mv dist/a.ts dist/b.ts
chmod +x tools/run.sh
echo hi > dist/hi.txt
echo more >> dist/hi.txt
echo hi | tee dist/hi.txt
cat src/a.ts > dist/copy.ts
cd src && ls
cd src && cat a.ts
cd src/deep && grep -n export b.ts
cd dist && rm -f x
ls && pwd
ls; pwd
ls src || echo none
test -f package.json && echo yes
[ -d src ] && echo yes
if [ -f package.json ]; then echo yes; fi
if test -d dist; then ls dist; else mkdir dist; fi
true
sleep 1
ps aux | grep node
kill 12345
lsof -i :3000
free -h
uptime
env
printenv PATH
export NODE_ENV=test
seq 1 5
tar czf dist/src.tgz src
tar tzf dist/src.tgz
zip -r dist/src.zip src
unzip -l dist/src.zip
git status
git status --short
git status -sb
git diff
git diff --stat
git diff --cached
git diff HEAD~1
git diff src/a.ts
git diff --name-only HEAD
git log
git log --oneline -10
git log --oneline --graph --all
git log -p src/a.ts
git log -1 --format=%H
git show
git show HEAD
git show --stat HEAD
git show HEAD:src/a.ts
git branch
git branch -a
git branch --show-current
git checkout -b feature
git checkout main
git checkout -- src/a.ts
git switch main
git add .
git add -A
git add src/a.ts
git commit -m "Fix the parser"
git commit -am "Fix the parser"
git commit --amend --no-edit
git add -A && git commit -m "Add tests"
git stash
git stash pop
git stash list
git blame src/a.ts
git rev-parse HEAD
git rev-parse --show-toplevel
git rev-parse --abbrev-ref HEAD
git remote -v
git fetch
git pull
git pull --rebase
git push
git push origin main
git push -u origin feature
git merge main
git rebase main
git reset --hard HEAD~1
git reset HEAD src/a.ts
git restore src/a.ts
git tag v1.0.0
git grep TODO
git ls-files
git ls-files src | head
git config --get user.name
git cherry-pick abc123
git clean -fd
git worktree list
npm test
npm run build
npm run lint
npm run test:unit
npm ci
npm install
npm install left-pad
npm ls
npm outdated
npm view react version
npm --version
npx tsc --noEmit
npx eslint src
npx prettier --check src
npx vitest run
npx vitest run src/a.test.ts
yarn
yarn test
pnpm install
pnpm test
node --version
node dist/index.js
node -e "console.log(1)"
node --test
tsc --noEmit
tsc -p .
eslint .
prettier --write src
python3 --version
python3 main.py
python3 -m pytest
python3 -m venv .venv
python3 -c "print(1)"
pytest -q
pip install -r requirements.txt
pip list
cargo build
cargo test
cargo --version
go build ./...
go test ./...
go version
make
make test
cmake --build build
gcc -o main main.c
./tools/run.sh
bash tools/run.sh
bash -c "ls src"
docker ps
docker build -t app .
docker compose up -d
kubectl get pods
curl https://example.com
curl -s https://api.example.com/v1/items
curl -s http://localhost:3000/health
curl -I https://example.com
curl -fsSL https://example.com/install.sh -o install.sh
curl -X POST -H 'content-type: application/json' -d '{}' http://localhost:3000/items
wget https://example.com/file.tgz
ping -c 1 example.com
nc -z localhost 5432
ssh host uptime
for f in src/*.ts; do echo $f; done
for f in src/*.ts; do wc -l "$f"; done
while true; do date; sleep 1; done
timeout 60 npm test
time npm test
npm test 2>&1 | tail -20
npm run build && npm test
npm run build > build.log 2>&1
ls node_modules/.bin
cat node_modules/react/package.json
which python3 && python3 --version
history
clear
`
    .trim()
    .split("\n"),
  "git commit -m \"$(cat <<'END'\nAdd a feature\n\nWith a body.\nEND\n)\"",
  "cat > dist/new.ts <<'END'\nexport const x = 1;\nEND",
  "cat <<'END' > dist/new.txt\nhello\nEND",
];
