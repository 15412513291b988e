/* SPDX-License-Identifier: MIT */
#include "proto/stores.h"

const struct store stores[STORES] = {
	{".ssh", false},
	{".gnupg", false},
	{".aws", false},
	{".azure", false},
	{".kube", false},
	{".config/gcloud", false},
	{".config/gh", false},
	{".docker/config.json", false},
	{".netrc", false},
	{".git-credentials", false},
	{".npmrc", true},
	{".yarnrc.yml", true},
	{".pypirc", false},
	{".bunfig.toml", true},
	{".config/.bunfig.toml", true},
	{".cargo/credentials", false},
	{".cargo/credentials.toml", false},
	{".gem/credentials", false},
	{".config/hub", false},
	{".config/containers/auth.json", false},
	{".terraform.d/credentials.tfrc.json", false},
	{".vault-token", false},
	{".pgpass", false},
};
