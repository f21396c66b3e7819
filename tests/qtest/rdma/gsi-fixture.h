/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest with QP 1 on rdma-verbs, over a double of libibumad.
 */
#ifndef TESTS_RDMA_GSI_FIXTURE_H
#define TESTS_RDMA_GSI_FIXTURE_H

#include <infiniband/umad.h>
#include "verbs-test.h"

#define GSI_GRH_LEN 40
#define GSI_MAD_LEN 256
#define GSI_BUFFER_LEN (GSI_GRH_LEN + GSI_MAD_LEN)

/* A packet that libibumad sends or receives */
typedef struct GsiPacket {
    struct ib_user_mad head;
    uint8_t mad[GSI_MAD_LEN];
} GsiPacket;

/* A guest with QP 1, and the port of its host. */
typedef struct Gsi {
    char *dir;
    int listener;
    int fd;                         /* the opened port */
    Verbs *v;
    QRdmaPd *pd;
    QRdmaCq *cq;                    /* of both queues */
    QRdmaQp *qp;
    QRdmaMr *mr;                    /* of all memory */
    uint64_t mem;                   /* a buffer of the guest, two pages */
} Gsi;

/* A file of the double */
char *gsi_path(const Gsi *g, const char *name);
/* Start a host whose port a guest has not opened yet. */
Gsi *gsi_host(void);
/* Create the other objects of the guest. */
void gsi_objects(Gsi *g);
/* Accept QEMU's connection to the port. */
void gsi_accept_port(Gsi *g);
/* Create QP 1 in RESET. */
void gsi_create(Gsi *g);
/* All of these steps, with QP 1 in RTS */
Gsi *gsi_new(void);
void gsi_free(Gsi *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Gsi, gsi_free)

/* A MAD of the connection manager: RTU, which names no addresses. */
void gsi_fill_mad(uint8_t mad[GSI_MAD_LEN], uint8_t seed);
void gsi_post_mad(Gsi *g, uint8_t gid_index, uint64_t wr_id,
                  const uint8_t mad[GSI_MAD_LEN]);

#endif
