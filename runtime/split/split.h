/* A backend that splits a target among others: the host computes its first layers, and the devices the rest and the
 * output, each a range of layers. Each row's stream passes from one to the next in 32 bits, once a pass. The host may
 * also compute the second halves of a device's layers (dt_layer.apart), so that their experts lie in its memory; the
 * stream then crosses twice for each such layer. A draft is whole on the device with the most free memory. A draft head
 * is on that of its target, which must be on one device.
 *
 * Every number is one of these backends', so that the exactness contract holds as it does for them. Which backend has
 * a layer changes the output, as another backend does; describe() names all. */
#ifndef DT_SPLIT_H
#define DT_SPLIT_H

#include "backend/backend.h"

enum { SPLIT_DEVICES = 16 }; /* maximum number of devices */

/* Its options name the backends and how the target is split: see dt_backend_options. Sizes of caches are those on the
 * devices, where memory is scarce. */
extern const dt_backend_ops dt_split_ops;

/* Fails with DT_EINPUT unless that many GPUs, as in dt_pair_options.gpus, are possible. */
dt_status split_check_devices(int gpus, dt_error *);

/* Before the target is uploaded: changes how many of its last layers are on devices; 0: all. */
void split_put_layers(dt_backend *, int device_layers);

/* Whether the first device has all of the target, so that its backend alone does. */
bool split_is_whole(const dt_backend *, const dt_model_desc *target);

#endif
