/* Rows of a pass: see pass.h. */
#include "backend/pass.h"

#include <stdlib.h>

dt_status pass_open(pass *p, int capacity, size_t path_capacity, dt_error *err) {
  *p = (pass){.capacity = capacity, .path_capacity = path_capacity};
  int32_t **arrays[] = {&p->token, &p->position, &p->sequence, &p->slot, &p->prefix, &p->path_len};
  p->path = malloc(path_capacity * sizeof(int32_t));
  bool ok = p->path;
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    ok &= (*arrays[i] = malloc((size_t)capacity * sizeof(int32_t))) != NULL;
  if (ok) return DT_OK;
  pass_close(p);
  return dt_fail_memory(err, "the rows of a pass", (path_capacity + 6ull * (size_t)capacity) * sizeof(int32_t));
}

void pass_close(pass *p) {
  free(p->token), free(p->position), free(p->sequence), free(p->slot), free(p->prefix), free(p->path),
      free(p->path_len);
  *p = (pass){0};
}

void pass_begin(pass *p, int longest) {
  p->n = 0;
  p->path_stride = longest;
}

bool pass_fits(const pass *p, int n) {
  int rows = p->n + n;
  return rows <= p->capacity && (size_t)rows * (size_t)p->path_stride <= p->path_capacity;
}

int32_t *pass_row(pass *p, int sequence, int32_t token, int slot, int prefix, int path_len) {
  int i = p->n++;
  p->token[i] = token;
  p->sequence[i] = sequence;
  p->slot[i] = slot;
  p->prefix[i] = prefix;
  p->path_len[i] = path_len;
  p->position[i] = prefix + path_len - 1;
  return p->path + (size_t)i * (size_t)p->path_stride;
}

void pass_text(pass *p, int sequence, const int32_t *token, int first, int last) {
  for (int i = first; i < last; i++) *pass_row(p, sequence, token[i], i, i, 1) = i;
}

dt_rows pass_rows(const pass *p) {
  return (dt_rows){.n = p->n,
                   .token = p->token,
                   .position = p->position,
                   .sequence = p->sequence,
                   .slot = p->slot,
                   .prefix = p->prefix,
                   .path = p->path,
                   .path_len = p->path_len,
                   .path_stride = p->path_stride,
                   .window = p->window,
                   .features = p->features};
}

dt_status pass_blank(pass *p, const dt_backend_ops *ops, dt_weights *w, dt_cache *c, int sequence, int n,
                     dt_error *err) {
  int32_t from[256], to[256];
  pass_begin(p, 1);
  *pass_row(p, sequence, 0, n - 1, 0, 1) = n - 1;
  dt_rows rows = pass_rows(p);
  dt_status status = ops->forward(w, c, &rows, NULL, err);
  for (int at = 0; at < n - 1 && !status;) {
    int count = 0;
    for (; count < 256 && at < n - 1; count++) from[count] = n - 1, to[count] = at++;
    status = ops->move(c, sequence, from, to, count, err);
  }
  return status;
}
