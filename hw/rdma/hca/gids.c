/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Property "allowed-gids": the addresses that the guest may send from.
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/sockets.h"
#include "qapi/error.h"
#include "int.h"

#define IPV6_BITS 128
#define IPV4_BITS 32

/* Parse ADDRESS or ADDRESS/BITS. A GID has IPv4 addresses mapped to IPv6. */
static bool parse_one(const char *text, RdmaHcaGids *gids, Error **errp)
{
    g_auto(GStrv) part = g_strsplit(text, "/", 2);
    const char *address = part[0];
    unsigned max = IPV6_BITS, bits;

    memset(gids->gid, 0, sizeof(gids->gid));
    if (inet_pton(AF_INET6, address, gids->gid) != 1) {
        memset(gids->gid + 10, 0xff, 2);
        if (inet_pton(AF_INET, address, gids->gid + 12) != 1) {
            error_setg(errp, "allowed-gids: '%s' is neither an IPv4 nor an "
                       "IPv6 address", address);
            return false;
        }
        max = IPV4_BITS;
    }
    bits = max;
    if (part[1] &&
        (qemu_strtoui(part[1], NULL, 10, &bits) || bits > max)) {
        error_setg(errp, "allowed-gids: the length of the prefix in '%s' must "
                   "be 0 to %u", text, max);
        return false;
    }
    gids->bits = IPV6_BITS - max + bits;
    return true;
}

bool rdma_hca_gids_parse(RdmaHca *hca, const char *text, Error **errp)
{
    g_auto(GStrv) list = NULL;

    rdma_hca_gids_free(hca);
    if (!text) {
        return true;
    }
    list = g_strsplit(text, " ", -1);
    hca->allowed_gids = g_new0(RdmaHcaGids, g_strv_length(list) + 1);
    for (char **one = list; *one; one++) {
        if (!**one) {
            continue;
        }
        if (!parse_one(*one, &hca->allowed_gids[hca->n_allowed_gids], errp)) {
            return false;
        }
        hca->n_allowed_gids++;
    }
    return true;
}

void rdma_hca_gids_free(RdmaHca *hca)
{
    g_clear_pointer(&hca->allowed_gids, g_free);
    hca->n_allowed_gids = 0;
}

static bool is_in(const uint8_t gid[RDMA_GID_LEN], const RdmaHcaGids *gids)
{
    unsigned bytes = gids->bits / 8, rest = gids->bits % 8;

    return !memcmp(gid, gids->gid, bytes) &&
           (!rest || !((gid[bytes] ^ gids->gid[bytes]) >> (8 - rest)));
}

bool rdma_hca_gid_allowed(const RdmaHca *hca, const uint8_t gid[RDMA_GID_LEN])
{
    for (uint32_t i = 0; i < hca->n_allowed_gids; i++) {
        if (is_in(gid, &hca->allowed_gids[i])) {
            return true;
        }
    }
    return !hca->allowed_gids;
}
