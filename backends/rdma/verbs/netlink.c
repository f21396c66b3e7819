/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Net devices of the host: their VLANs, and addresses that become GIDs of the
 * host's port.
 *
 * Context: worker, except verbs_netlink_check().
 */
#include "qemu/osdep.h"
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include "qapi/error.h"
#include "int.h"
#include "../trace.h"

/* Where a GID has its IPv4 address */
#define IPV4_AT 12

/* Translate a (negative) error of libnl. */
static int to_errno(int err)
{
    switch (-err) {
    case NLE_SUCCESS:
        return 0;
    case NLE_EXIST:
        return -EEXIST;
    case NLE_PERM:
        return -EPERM;
    case NLE_NOACCESS:
        return -EACCES;
    case NLE_NOMEM:
        return -ENOMEM;
    case NLE_NODEV:
    case NLE_OBJ_NOTFOUND:
        return -ENODEV;
    case NLE_NOADDR:
        return -EADDRNOTAVAIL;
    default:
        return -EIO;
    }
}

/* Returns 0 or a negative error of libnl. */
static int change_address(bool add, uint32_t ifindex,
                          const uint8_t gid[RDMA_GID_LEN])
{
    bool v4 = rdma_gid_is_ipv4(gid);
    struct nl_sock *sk = nl_socket_alloc();
    struct rtnl_addr *addr = rtnl_addr_alloc();
    struct nl_addr *local =
        v4 ? nl_addr_build(AF_INET, gid + IPV4_AT, RDMA_GID_LEN - IPV4_AT)
           : nl_addr_build(AF_INET6, gid, RDMA_GID_LEN);
    int err = -NLE_NOMEM;

    if (sk && addr && local) {
        err = nl_connect(sk, NETLINK_ROUTE);
    }
    if (!err) {
        err = rtnl_addr_set_local(addr, local);
    }
    if (!err) {
        rtnl_addr_set_ifindex(addr, ifindex);
        /* With the whole address as prefix the kernel adds no route. */
        rtnl_addr_set_prefixlen(addr, v4 ? 32 : 128);
        if (!v4) {
            rtnl_addr_set_flags(addr, IFA_F_NODAD);
        }
        err = add ? rtnl_addr_add(sk, addr, NLM_F_EXCL)
                  : rtnl_addr_delete(sk, addr, 0);
    }
    nl_addr_put(local);
    rtnl_addr_put(addr);
    nl_socket_free(sk);
    return err;
}

static bool is_address(const struct sockaddr *sa,
                       const uint8_t gid[RDMA_GID_LEN])
{
    if (sa && sa->sa_family == AF_INET && rdma_gid_is_ipv4(gid)) {
        return !memcmp(&((const struct sockaddr_in *)sa)->sin_addr,
                       gid + IPV4_AT, RDMA_GID_LEN - IPV4_AT);
    }
    return sa && sa->sa_family == AF_INET6 &&
           !memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, gid,
                   RDMA_GID_LEN);
}

/* An IPv4 address may have a label, for instance "eth0:1". */
static bool is_of_netdev(const char *name, const char *netdev)
{
    size_t len = strlen(netdev);

    return !strncmp(name, netdev, len) && (!name[len] || name[len] == ':');
}

/*
 * Look for the address with any prefix length. An IPv4 address with another
 * length is another address to the kernel, but the same GID.
 */
static bool have_address(const char *netdev, const uint8_t gid[RDMA_GID_LEN])
{
    struct ifaddrs *all, *a;

    if (getifaddrs(&all)) {
        return false;
    }
    for (a = all; a; a = a->ifa_next) {
        if (is_of_netdev(a->ifa_name, netdev) &&
            is_address(a->ifa_addr, gid)) {
            break;
        }
    }
    freeifaddrs(all);
    return a;
}

int verbs_netlink_add(uint32_t ifindex, const uint8_t gid[RDMA_GID_LEN],
                      Error **errp)
{
    char text[INET6_ADDRSTRLEN], name[IF_NAMESIZE] = "?";
    int err, ret;

    inet_ntop(AF_INET6, gid, text, sizeof(text));
    if_indextoname(ifindex, name);
    err = have_address(name, gid) ? -NLE_EXIST
                                  : change_address(true, ifindex, gid);
    ret = to_errno(err);
    trace_rdma_verbs_netlink(true, text, name, ret);
    if (ret == -EPERM) {
        error_setg(errp, "QEMU may not add GID %s to the host's net device "
                   "%s: it needs CAP_NET_ADMIN", text, name);
    } else if (ret && ret != -EEXIST) {
        error_setg(errp, "cannot add GID %s to the host's net device %s: %s",
                   text, name, nl_geterror(err));
    }
    return ret;
}

int verbs_netlink_del(uint32_t ifindex, const uint8_t gid[RDMA_GID_LEN])
{
    char text[INET6_ADDRSTRLEN], name[IF_NAMESIZE] = "?";
    int ret = to_errno(change_address(false, ifindex, gid));

    inet_ntop(AF_INET6, gid, text, sizeof(text));
    if_indextoname(ifindex, name);
    trace_rdma_verbs_netlink(false, text, name, ret);
    return ret;
}

bool verbs_netlink_check(Error **errp)
{
    static const uint8_t loopback[RDMA_GID_LEN] = { [15] = 1 };
    /* No device has this index, but the kernel checks permission first. */
    int ret = to_errno(change_address(true, INT32_MAX, loopback));

    if (ret == -EPERM) {
        error_setg(errp, "gid-mode=add needs permission to change the "
                   "addresses of the host's net devices");
        error_append_hint(errp, "Give QEMU CAP_NET_ADMIN, or use "
                          "gid-mode=match and give the host's net device the "
                          "addresses of the guest.\n");
        return false;
    }
    return true;
}

char *verbs_vlans_read(void)
{
    char *all = NULL;

    g_file_get_contents("/proc/net/vlan/config", &all, NULL, NULL);
    return all;
}

/*
 * Find the next line "name | id | name of the device below"; headlines have
 * another form. Returns false at the end.
 */
static bool next_vlan(const char **at, char *name, unsigned *id, char *below)
{
    while (*at && **at) {
        const char *line = *at;
        const char *end = strchr(line, '\n');

        *at = end ? end + 1 : NULL;
        QEMU_BUILD_BUG_ON(IF_NAMESIZE != 16);
        if (sscanf(line, "%15s | %u | %15s", name, id, below) == 3) {
            return true;
        }
    }
    return false;
}

uint16_t verbs_vlan_of(const char *vlans, const char *netdev)
{
    char name[IF_NAMESIZE], below[IF_NAMESIZE];
    unsigned id;

    while (next_vlan(&vlans, name, &id, below)) {
        if (!strcmp(name, netdev)) {
            return id;
        }
    }
    return RDMA_NO_VLAN;
}

uint32_t verbs_vlan_ifindex(const char *vlans, const char *netdev,
                            uint16_t vlan)
{
    char name[IF_NAMESIZE], below[IF_NAMESIZE];
    unsigned id;

    while (next_vlan(&vlans, name, &id, below)) {
        if (id == vlan && !strcmp(below, netdev)) {
            return if_nametoindex(name);
        }
    }
    return 0;
}
