/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading captures in tests: the classic pcap format, Ethernet link type.
 */
#ifndef WIRE_PCAP_H
#define WIRE_PCAP_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

typedef struct WireFrame {
    uint8_t *data;                  /* its own allocation, exactly @len bytes */
    uint32_t len;
} WireFrame;

/*
 * Read the frames of a capture file into an array of WireFrame. The caller
 * frees it with g_array_unref(). Fails the test on any error.
 */
GArray *wire_pcap_read(const char *path);

/*
 * Read the capture in tests/data that rxe, the software RoCE of Linux, has
 * made.
 */
GArray *wire_pcap_read_rxe(void);

#endif /* WIRE_PCAP_H */
