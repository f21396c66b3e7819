/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The GIDs of the host ibverbs backend: an address of the guest has to be one
 * of the host's port, for the host's device sends with its own.
 */
#include "qemu/osdep.h"
#include <net/if.h>
#include "qemu/error-report.h"
#include "rdma-verbs-int.h"
#include "trace.h"

#define MAX_HOST_GIDS 1024

struct VerbsGid {
    bool used;
    uint8_t gid[RDMA_GID_LEN];
    uint16_t vlan;
    uint32_t host_index;
};

/* The VLAN of a net device, or RDMA_NO_VLAN. */
static uint16_t netdev_vlan(uint32_t ifindex)
{
    g_autofree char *all = NULL;
    char name[IF_NAMESIZE];
    char *line, *save = NULL;

    if (!if_indextoname(ifindex, name) ||
        !g_file_get_contents("/proc/net/vlan/config", &all, NULL, NULL)) {
        return RDMA_NO_VLAN;
    }
    /* Lines are "name | id | name of the device below" */
    for (line = strtok_r(all, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        g_auto(GStrv) field = g_strsplit(line, "|", 3);

        if (g_strv_length(field) == 3 &&
            !strcmp(g_strstrip(field[0]), name)) {
            return atoi(field[1]);
        }
    }
    return RDMA_NO_VLAN;
}

static bool is_gid(const RdmaVerbs *v, const struct ibv_gid_entry *e,
                   const uint8_t gid[RDMA_GID_LEN], uint16_t vlan)
{
    return e->port_num == v->port_num &&
           e->gid_type == IBV_GID_TYPE_ROCE_V2 &&
           !memcmp(e->gid.raw, gid, RDMA_GID_LEN) &&
           netdev_vlan(e->ndev_ifindex) == vlan && e->gid_index <= UINT8_MAX;
}

static int find_host_gid(RdmaVerbs *v, const uint8_t gid[RDMA_GID_LEN],
                         uint16_t vlan)
{
    g_autofree struct ibv_gid_entry *entries =
        g_new0(struct ibv_gid_entry, MAX_HOST_GIDS);
    ssize_t n = ibv_query_gid_table(v->dev.ctx, entries, MAX_HOST_GIDS, 0);

    if (n < 0) {
        return n;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (is_gid(v, &entries[i], gid, vlan)) {
            return entries[i].gid_index;
        }
    }
    return -EPERM;
}

int verbs_gid_add(RdmaBackend *rb, uint32_t index,
                  const uint8_t gid[RDMA_GID_LEN], uint16_t vlan)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsGid *g = &v->gids[index];
    char text[INET6_ADDRSTRLEN];
    int ret = find_host_gid(v, gid, vlan);

    inet_ntop(AF_INET6, gid, text, sizeof(text));
    trace_rdma_verbs_gid_add(v, index, text, vlan, ret);
    if (ret < 0) {
        if (ret == -EPERM) {
            warn_report_once("rdma-verbs: the guest's GID %s (VLAN %u) is not "
                             "one of RoCEv2 on port %u of '%s': give the "
                             "host's net device the address of the guest",
                             text, vlan, v->port_num, v->ibdev);
        }
        return ret;
    }
    *g = (VerbsGid) { .used = true, .vlan = vlan, .host_index = ret };
    memcpy(g->gid, gid, RDMA_GID_LEN);
    return 0;
}

int verbs_gid_del(RdmaBackend *rb, uint32_t index)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    if (!v->gids[index].used) {
        return -ENOENT;
    }
    v->gids[index].used = false;
    return 0;
}

int verbs_gid_host_index(RdmaVerbs *v, uint32_t index)
{
    if (index >= v->parent_obj.limits.gid_table_len || !v->gids[index].used) {
        return -ENOENT;
    }
    return v->gids[index].host_index;
}

int verbs_gid_path(RdmaVerbs *v, const RdmaAv *av, struct ibv_ah_attr *ah)
{
    int index = verbs_gid_host_index(v, av->sgid_index);

    if (index < 0 || av->port_num != RDMA_PORT_NUM) {
        return -EINVAL;
    }
    ah->grh.flow_label = av->flow_label;
    ah->grh.sgid_index = index;
    ah->grh.hop_limit = av->hop_limit;
    ah->grh.traffic_class = av->traffic_class;
    memcpy(ah->grh.dgid.raw, av->dgid, RDMA_GID_LEN);
    ah->sl = av->sl;
    ah->static_rate = av->static_rate;
    ah->is_global = 1;
    ah->port_num = v->port_num;
    return 0;
}

void verbs_gids_init(RdmaVerbs *v)
{
    v->gids = g_new0(VerbsGid, v->parent_obj.limits.gid_table_len);
}

void verbs_gids_free(RdmaVerbs *v)
{
    g_free(v->gids);
    v->gids = NULL;
}

void verbs_gids_reset(RdmaVerbs *v)
{
    memset(v->gids, 0, v->parent_obj.limits.gid_table_len * sizeof(*v->gids));
}
