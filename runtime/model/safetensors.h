/* Reads safetensors files. Opening them checks their headers as strictly as the reference implementation does. The data
 * stays in the files and is read from there.
 *
 *   st *weights;
 *   if (st_open_folder("models/mini-target", &weights, &err) != DT_OK) ...
 *   const st_tensor *t = st_find(weights, "embed_out.weight");
 *   ...
 *   st_close(weights); */
#ifndef DT_SAFETENSORS_H
#define DT_SAFETENSORS_H

#include "model/source.h"

#include <stddef.h>
#include <stdint.h>

typedef struct st st;

typedef struct {
  const char *name;
  const dt_source *source; /* the file that contains it */
  char dtype[16];          /* as the header spells it ("F16", "U8", ..); unknown types are kept too */
  int rank;                /* 0: a scalar */
  const uint64_t *shape;   /* [rank] row-major, little endian; a dimension may be 0 */
  uint64_t offset, size;   /* in bytes: from the beginning of the file; of the data */
} st_tensor;

/* Opens FOLDER/model.safetensors; if it is missing, the shards that FOLDER/model.safetensors.index.json lists; if that
 * is missing too, FOLDER/medusa_lm_head.safetensors. Errors name the file, the tensor, and the values found and
 * expected. Free with st_close. */
dt_status st_open_folder(const char *folder, st **out, dt_error *err);

/* The same from the bytes of one file, which the caller keeps until st_close; `name` stands for the path in
 * messages. */
dt_status st_open_bytes(const char *name, const void *bytes, size_t size, st **out, dt_error *err);

void st_close(st *s); /* NULL is allowed; tensors and their files are gone afterwards */

const st_tensor *st_find(const st *s, const char *name); /* NULL: there is none */

/* Returns the name of the tensor that contains this byte of the file; NULL: there is none. */
const char *st_tensor_at(const st *s, const char *file, uint64_t offset);

/* Writes a shape such as "[4096, 256]" to `text`, cut if it does not fit, and returns `text`. */
char *st_shape_text(const uint64_t *shape, int rank, char *text, size_t size);

#endif
