/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>
#include "wire-pcap.h"

#define PCAP_MAGIC 0xa1b2c3d4u
#define PCAP_ETHERNET 1
#define PCAP_HEADER_LEN 24
#define PCAP_RECORD_LEN 16

static uint32_t get32(const char *p, bool swap)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return swap ? GUINT32_SWAP_LE_BE(v) : v;
}

static void frame_clear(void *opaque)
{
    WireFrame *frame = opaque;

    g_free(frame->data);
}

GArray *wire_pcap_read(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autofree char *file = NULL;
    GArray *frames = g_array_new(false, false, sizeof(WireFrame));
    gsize left;
    bool swap;
    char *p;

    g_file_get_contents(path, &file, &left, &err);
    g_assert_no_error(err);
    g_array_set_clear_func(frames, frame_clear);

    g_assert_cmpuint(left, >=, PCAP_HEADER_LEN);
    swap = get32(file, false) != PCAP_MAGIC;
    g_assert_cmphex(get32(file, swap), ==, PCAP_MAGIC);
    g_assert_cmpuint(get32(file + 20, swap), ==, PCAP_ETHERNET);

    left -= PCAP_HEADER_LEN;
    for (p = file + PCAP_HEADER_LEN; left;) {
        WireFrame frame;

        g_assert_cmpuint(left, >=, PCAP_RECORD_LEN);
        frame.len = get32(p + 8, swap);
        g_assert_cmpuint(frame.len, ==, get32(p + 12, swap));
        left -= PCAP_RECORD_LEN;
        p += PCAP_RECORD_LEN;

        g_assert_cmpuint(left, >=, frame.len);
        frame.data = g_memdup2(p, frame.len);
        g_array_append_val(frames, frame);
        left -= frame.len;
        p += frame.len;
    }
    return frames;
}

GArray *wire_pcap_read_rxe(void)
{
    g_autofree char *path = g_test_build_filename(G_TEST_DIST, "..", "data",
                                                  "roce-rxe.pcap", NULL);

    return wire_pcap_read(path);
}
