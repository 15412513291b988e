/* SPDX-License-Identifier: MIT */
/*
 * Capabilities. They are those of our user namespace only, but that is enough to undo the view
 * (mount, chroot, ptrace of init), so they go before the command starts.
 *
 * Root is a case of its own (findings 6): a root without DAC_OVERRIDE and its like cannot build in a
 * checkout that belongs to uid 1000, which is what CI containers do. Those few concern files and
 * processes of mapped ids and stay; none of them changes a mount, a namespace or the network.
 */
#include "sandbox/setup.h"
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint8_t root_keeps[] = {
	CAP_DAC_OVERRIDE,
	CAP_DAC_READ_SEARCH,
	CAP_FOWNER,
	CAP_CHOWN,
	CAP_FSETID,
	CAP_SETUID,
	CAP_SETGID,
	CAP_KILL,
};

static const char remedy[] = "this is a bug of vx or of the kernel's capability rules";

void
caps_drop(const struct setup *s)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	/* Locked, so that a set-id program or a root shell cannot bring the old rules back. Uid 0 keeps
	 * its exec rule only where it keeps capabilities: the bounding set then says which. */
	unsigned long bits = SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
			     SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
			     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	uint64_t keep = 0;

	if (s->maps_all)
		for (size_t i = 0; i < array_len(root_keeps); i++)
			keep |= 1ULL << root_keeps[i];
	else
		bits |= SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP;
	/* Without it root cannot be mapped into a namespace below. It also makes capabilities of files, which no
	 * commit carries over; what is written in a live view would keep them. */
	if (s->maps_all && s->spec.nested && !s->spec.live)
		keep |= 1ULL << CAP_SETFCAP;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		setup_die(errno, remedy, "cannot clear the ambient capabilities");
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0))
		setup_die(errno, remedy, "cannot lock the securebits");
	/* The kernel's last capability is the last that prctl knows. */
	for (unsigned long cap = 0; cap < 64; cap++)
		if (!(keep >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)) {
			if (errno == EINVAL && cap > CAP_MAC_ADMIN)
				break;
			setup_die(errno, remedy, "cannot drop capability %lu", cap);
		}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		setup_die(errno, remedy, "cannot set no_new_privs");

	data[0].effective = data[0].permitted = (uint32_t)keep;
	data[1].effective = data[1].permitted = (uint32_t)(keep >> 32);
	if (syscall(SYS_capset, &header, data))
		setup_die(errno, remedy, "cannot drop the capabilities");
}
