#!/bin/sh
# What is shipped: the site and the tool in one archive that depends on their content alone, and its
# check sum.
set -eu
stage=$(mktemp -d /tmp/bundle.XXXXXX)
trap 'rm -rf "$stage"' EXIT
mkdir -p dist "$stage/bin"
cp -R ../site/dist "$stage/site"
cp ../slug/dist/bin/slug "$stage/bin/slug"
cp VERSION "$stage/VERSION"
name=observer-$(cat VERSION).tar
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	-cf "dist/$name" -C "$stage" bin site VERSION
(cd dist && sha256sum "$name" >SHA256SUMS)
echo "dist/$name: $(tar -tf "dist/$name" | wc -l | tr -d ' ') entries"
