/* The models and heads that this backend computes: see supported.cu. */
#ifndef DT_CUDA_SUPPORTED_CUH
#define DT_CUDA_SUPPORTED_CUH

#include "internal.cuh"

/* DT_EINPUT if the description is wrong, or if it has a part that the backend does not compute. *format: the type of
 * the activations. */
dt_status check_supported(const dt_model_desc *, number *format, dt_error *);
dt_status check_head_supported(const dt_head_desc *, const dt_weights *target, dt_error *);

/* Describes a layer of a model on the device. */
layer_describer cuda_keys_of;

/* DT_EINPUT if the weights are to be rounded to another type. */
dt_status check_asked(const dt_holding *, dt_error *);

#endif
