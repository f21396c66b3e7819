/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest with QP 1 on rdma-verbs, over a double of libibumad.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "qemu/bswap.h"
#include "tests/fake-ibverbs/fake-ibumad.h"
#include "gsi-fixture.h"

char *gsi_path(const Gsi *g, const char *name)
{
    return g_build_filename(g->dir, name, NULL);
}

Gsi *gsi_host(void)
{
    Gsi *g = g_new0(Gsi, 1);
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    g_autofree char *path = NULL;

    g->fd = -1;
    g->dir = g_dir_make_tmp("fake-ibumad-XXXXXX", NULL);
    path = gsi_path(g, FAKE_IBUMAD_PORT);
    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    g->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(g->listener, (struct sockaddr *)&addr, sizeof(addr)),
                    ==, 0);
    g_assert_cmpint(listen(g->listener, 4), ==, 0);
    g_setenv(FAKE_IBUMAD_DIR, g->dir, true);
    g->v = verbs_host(NULL);
    g_unsetenv(FAKE_IBUMAD_DIR);
    return g;
}

void gsi_accept_port(Gsi *g)
{
    if (g->fd >= 0) {
        close(g->fd);
    }
    g->fd = accept4(g->listener, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(g->fd, >=, 0);
}

void gsi_objects(Gsi *g)
{
    g->pd = qrdma_alloc_pd(g->v->dev);
    g->cq = qrdma_create_cq(g->v->dev, 64);
    g->mr = qrdma_get_dma_mr(g->pd, RDMA_ACCESS_LOCAL_WRITE);
    g->mem = qrdma_alloc(g->v->dev, 8192);
}

void gsi_create(Gsi *g)
{
    g->qp = qrdma_create_qp(g->pd, g->cq, g->cq, RDMA_QPT_GSI);
    g_assert_cmpuint(g->qp->qpn, ==, RDMA_QPN_GSI);
    g_assert_cmpuint(g->qp->wire_qpn, ==, RDMA_QPN_GSI);
    gsi_accept_port(g);
}

Gsi *gsi_new(void)
{
    Gsi *g = gsi_host();

    verbs_plug(g->v);
    gsi_objects(g);
    gsi_create(g);
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    return g;
}

void gsi_free(Gsi *g)
{
    static const char *names[] = { FAKE_IBUMAD_PORT, "register2", "send" };

    verbs_free(g->v);
    close(g->fd);
    close(g->listener);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        g_autofree char *path = gsi_path(g, names[i]);

        g_unlink(path);
    }
    g_rmdir(g->dir);
    g_free(g->dir);
    g_free(g);
}

void gsi_fill_mad(uint8_t mad[GSI_MAD_LEN], uint8_t seed)
{
    for (int i = 0; i < GSI_MAD_LEN; i++) {
        mad[i] = i * 7 + seed;
    }
    mad[0] = 1;
    mad[1] = 7;
    mad[2] = 2;
    mad[3] = 3;
    stw_be_p(mad + 16, 0x14);
}

void gsi_post_mad(Gsi *g, uint8_t gid_index, uint64_t wr_id,
                  const uint8_t mad[GSI_MAD_LEN])
{
    RdmaSge sge[2] = {
        { qrdma_dma(g->v->dev, g->mem), 24, g->mr->lkey },
        { qrdma_dma(g->v->dev, g->mem) + 24, GSI_MAD_LEN - 24, g->mr->lkey },
    };
    RdmaSendWr wr = {
        .wr_id = wr_id,
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED,
        .sg_list = sge,
        .num_sge = 2,
        .wr.ud = {
            .remote_qpn = RDMA_QPN_GSI,
            .remote_qkey = RDMA_GSI_QKEY,
            .av = qrdma_av(g->v->dev, gid_index),
        },
    };

    qrdma_write(g->v->dev, g->mem, mad, GSI_MAD_LEN);
    qrdma_post_send(g->qp, &wr);
}
