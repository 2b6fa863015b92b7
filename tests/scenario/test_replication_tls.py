"""Replication beyond the machine: certificates, names, tokens; good ones, bad ones and none."""

import json
import re
import socket
import ssl
import subprocess

import pytest

from support import followers, shop
from support.followers import Certificates, differences, start_publisher, token_file

LISTEN = "tls://127.0.0.1:0"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """An authority that nobody trusts."""
    return Certificates(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="module")
def host(authority):
    """What the publisher shows, as options."""
    certificate, key = authority.sign("host")
    return ["--certificate", certificate, "--key", key]


@pytest.fixture
def archive(run, tmp_path):
    shop.make_shop(tmp_path / "shop.db", orders=50)
    run("copy", "sqlite:shop.db", "archive:a.tide", "--quiet").check()
    token_file(tmp_path / "token")
    return tmp_path / "a.tide"


def check_copy(run, archive, copy, *args):
    said = json.loads(run("archive", "subscribe", *args, copy, "--json").check().out)
    assert said["caught_up"] and differences(archive, copy) == []


def test_token_over_tls(run, start, tmp_path, archive, authority, host):
    publisher = start_publisher(start, "a.tide", LISTEN, *host, "--token-file", "token")
    check_copy(run, archive, tmp_path / "b.tide", publisher.address, "--ca", authority.ca,
               "--token-file", "token")
    token_file(tmp_path / "other", "another-token-0123456789")
    for options, says in ((["--token-file", "other"], "the token is not the one that is asked for"),
                          ([], "a token is needed: --token-file")):
        result = run("archive", "subscribe", publisher.address, "c.tide", "--follow", "--ca",
                     authority.ca, *options).check(3)
        assert f"the publisher refuses: {says}" in result.err
    assert followers.rows_of(tmp_path / "c.tide") == 0
    publisher.terminate().check()
    assert "token-0123456789" not in publisher.err() + result.err
    assert "was refused: the token is not" in publisher.err()


def test_address_without_tls_is_told_so(run, start, tmp_path, archive, host):
    publisher = start_publisher(start, "a.tide", LISTEN, *host, "--token-file", "token")
    result = run("archive", "subscribe", publisher.address.replace("tls://", "tcp://"),
                 "c.tide").check(3)
    assert "it speaks TLS: give its address as tls://" in result.err
    assert not (tmp_path / "c.tide").exists()
    publisher.terminate().check()


def test_client_certificate_over_tls(run, start, tmp_path, archive, authority, stranger, host):
    publisher = start_publisher(start, "a.tide", LISTEN, *host, "--client-ca", authority.ca)
    good, bad = authority.sign("follower"), stranger.sign("follower")
    check_copy(run, archive, tmp_path / "b.tide", publisher.address, "--ca", authority.ca,
               "--certificate", good[0], "--key", good[1])
    for options in ([], ["--certificate", bad[0], "--key", bad[1]]) * 10:
        result = run("archive", "subscribe", publisher.address, "c.tide", "--ca", authority.ca,
                     *options).check(3)
        assert "does not take our certificate" in result.err, result.err
    publisher.terminate().check()
    assert "shown no certificate" in publisher.err()
    assert "certificate is not trusted" in publisher.err()


def test_both_are_asked_for_where_both_are_given(run, start, tmp_path, archive, authority, host):
    publisher = start_publisher(start, "a.tide", LISTEN, *host, "--client-ca", authority.ca,
                                "--token-file", "token")
    certificate, key = authority.sign("follower")
    shown = ["--certificate", certificate, "--key", key]
    result = run("archive", "subscribe", publisher.address, "c.tide", "--ca", authority.ca,
                 *shown).check(3)
    assert "a token is needed" in result.err
    check_copy(run, archive, tmp_path / "b.tide", publisher.address, "--ca", authority.ca, *shown,
               "--token-file", "token")


def test_publisher_that_is_not_who_it_should_be(run, start, tmp_path, archive, authority, stranger):
    other = authority.sign("other", "DNS:elsewhere.example.org,IP:192.0.2.1")
    publisher = start_publisher(start, "a.tide", LISTEN, "--certificate", other[0], "--key",
                                other[1], "--token-file", "token")
    result = run("archive", "subscribe", publisher.address, "c.tide", "--ca", authority.ca,
                 "--token-file", "token").check(3)
    assert "IP address mismatch" in result.err
    result = run("archive", "subscribe", publisher.address.replace("127.0.0.1", "localhost"),
                 "c.tide", "--ca", authority.ca, "--token-file", "token").check(3)
    assert "hostname mismatch" in result.err.lower()
    for ca in ([], ["--ca", stranger.ca]):
        result = run("archive", "subscribe", publisher.address, "c.tide", *ca, "--follow",
                     "--token-file", "token").check(3)
        assert "certificate is not trusted" in result.err
    publisher.terminate().check()
    assert publisher.err().count(" follows; ") == 0  # the token was told to nobody


def test_name_of_the_host_is_checked_when_it_is_one(run, start, tmp_path, archive, authority, host):
    publisher = start_publisher(start, "a.tide", "tls://localhost:0", *host, "--token-file", "token")
    check_copy(run, archive, tmp_path / "b.tide", publisher.address, "--ca", authority.ca,
               "--token-file", "token")


def test_plain_words_and_old_tls_are_refused(start, run, archive, authority, host):
    publisher = start_publisher(start, "a.tide", LISTEN, *host, "--token-file", "token")
    with socket.create_connection(("127.0.0.1", publisher.port), 60) as plain:
        plain.sendall(b"tidemark-hi\0\1\0\4\0\0\0\0\0\0\0")
        try:
            assert b"dendro" not in plain.recv(100)
        except ConnectionResetError:
            pass
    publisher.wait_for_line("was refused: it speaks TLS")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.ca)
    with socket.create_connection(("127.0.0.1", publisher.port), 60) as raw:
        with context.wrap_socket(raw, server_hostname="localhost") as secure:
            assert secure.version() == "TLSv1.3"
            assert secure.recv(12) == b"tidemark-no\0"  # nothing was said: no token
    result = run("archive", "subscribe", publisher.address.replace("tls", "tcp"), "c.tide",
                 "--timeout", "2")
    assert result.code == 3
    check = subprocess.run(["openssl", "s_client", "-tls1_1", "-connect",
                            f"127.0.0.1:{publisher.port}"], stdin=subprocess.DEVNULL,
                           capture_output=True, check=False, timeout=60)
    assert check.returncode != 0
    assert publisher.running()


def test_stream_over_tls_goes_on_after_cuts(start, run, tmp_path, archive, authority, host,
                                            proxy_to):
    publisher = start_publisher(start, "a.tide", LISTEN, *host, "--token-file", "token")
    proxy = proxy_to(publisher)
    proxy.cut_after(9000)
    follower = start("archive", "subscribe", f"tls://127.0.0.1:{proxy.port}", "b.tide", "--follow",
                     "--ca", authority.ca, "--token-file", "token")
    follower.wait_until(lambda: differences_or_all(archive, tmp_path / "b.tide") == [], timeout=60)
    assert proxy.cuts == 1 and "tried again in 0.2 s" in follower.err()
    follower.terminate().check()


def differences_or_all(archive, copy):
    return differences(archive, copy) if copy.exists() else ["all"]


def test_files_that_cannot_be_used_are_named(run, tmp_path, archive, authority, host):
    token_file(tmp_path / "shared", mode=0o640)
    token_file(tmp_path / "short", "secret")
    token_file(tmp_path / "lines", "0123456789abcdef\n0123456789abcdef")
    token_file(tmp_path / "long", "x" * 1025)
    _, other_key = authority.sign("another")
    open_key = tmp_path / "open.key"
    open_key.write_bytes(other_key.read_bytes())
    open_key.chmod(0o644)
    locked = tmp_path / "locked.key"
    subprocess.run(["openssl", "ec", "-in", other_key, "-aes256", "-passout", "pass:x", "-out",
                    locked], check=True, capture_output=True, timeout=60)
    locked.chmod(0o600)
    certificate, key = host[1], host[3]
    pair = ["--certificate", certificate, "--key", key]
    token = ["--token-file", "token"]
    for options, says in (
            ([], "tls:// needs --certificate and --key"),
            (["--certificate", certificate], "belong together"),
            (pair, "would be open to everybody"),
            ([*pair, "--token-file", "none"], "cannot read the token in none"),
            ([*pair, "--token-file", "."], "is not a file"),
            ([*pair, "--token-file", "shared"], "chmod 0600"),
            ([*pair, "--token-file", "short"], "16 to 1024"),
            ([*pair, "--token-file", "lines"], "16 to 1024"),
            ([*pair, "--token-file", "long"], "16 to 1024"),
            (["--certificate", "none", "--key", key, *token], "none"),
            (["--certificate", "token", "--key", key, *token], "no certificate that can be used"),
            (["--certificate", certificate, "--key", other_key, *token], "no key of the certificate"),
            (["--certificate", certificate, "--key", open_key, *token], "may read the key"),
            (["--certificate", certificate, "--key", locked, *token], "without a passphrase"),
            (["--certificate", certificate, "--key", "none", *token], "none"),
            ([*pair, "--client-ca", "token"], "no certificates of authorities")):
        result = run("archive", "publish", "a.tide", "--listen", LISTEN, *options).check(2)
        assert re.search(re.escape(says), result.err), result.err
        assert "0123456789" not in result.err
