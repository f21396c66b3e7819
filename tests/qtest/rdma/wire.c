/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The far end of a dgram netdev.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "wire.h"

static void wire_address(struct sockaddr_un *addr, const char *dir,
                         const char *name)
{
    addr->sun_family = AF_UNIX;
    g_assert_cmpint(snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/%s",
                             dir, name), <, sizeof(addr->sun_path));
}

void wire_open(Wire *w)
{
    w->dir = g_dir_make_tmp("roce-net-XXXXXX", NULL);
    g_assert_nonnull(w->dir);
    wire_address(&w->to, w->dir, "qemu");
    wire_address(&w->from, w->dir, "test");
    w->fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    g_assert_cmpint(w->fd, >=, 0);
    g_assert_cmpint(bind(w->fd, (struct sockaddr *)&w->from,
                         sizeof(w->from)), ==, 0);
    w->netdev = g_strdup_printf("dgram,local.type=unix,local.path=%s,"
                                "remote.type=unix,remote.path=%s",
                                w->to.sun_path, w->from.sun_path);
}

void wire_close(Wire *w)
{
    close(w->fd);
    g_unlink(w->to.sun_path);
    g_unlink(w->from.sun_path);
    g_rmdir(w->dir);
    g_free(w->dir);
    g_free(w->netdev);
}

void wire_send(Wire *w, const void *frame, size_t size)
{
    g_assert_cmpint(sendto(w->fd, frame, size, 0, (struct sockaddr *)&w->to,
                           sizeof(w->to)), ==, size);
}

size_t wire_recv(Wire *w, uint8_t frame[FRAME_MAX], int timeout_ms)
{
    GPollFD pfd = { .fd = w->fd, .events = G_IO_IN };
    ssize_t size;

    if (g_poll(&pfd, 1, timeout_ms) == 0) {
        return 0;
    }
    size = recv(w->fd, frame, FRAME_MAX, 0);
    g_assert_cmpint(size, >, 0);
    return size;
}

size_t make_udp(uint8_t *frame, uint8_t tag)
{
    const size_t size = 90;

    memset(frame, 0, size);
    memset(frame, 0xff, 6); /* broadcast */
    stw_be_p(frame + 12, 0x0800);
    frame[14] = 0x45;
    stw_be_p(frame + 16, size - 14);
    frame[22] = 64;
    frame[23] = 17;
    stw_be_p(frame + 36, 5353);
    stw_be_p(frame + 38, size - 34);
    frame[size - 1] = tag;
    return size;
}
