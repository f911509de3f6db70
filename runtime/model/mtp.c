/* Layers for multi-token prediction: see mtp.h. */
#include "model/mtp.h"

static dt_matrix find_own(finder *f, const config *c, const char *hf, const char *in_gguf) {
  if (!find_is_there(f, hf, in_gguf)) return (dt_matrix){0};
  return find_matrix(f, c->shape.vocab, c->shape.hidden, hf, in_gguf);
}

bool mtp_find(finder *f, const config *c, const mtp_names *names, dt_head_desc *d) {
  int H = c->shape.hidden;
  const char *fc_in_gguf = "blk.%d.nextn.eh_proj.weight";
  if (!find_is_there(f, names->fc, fc_in_gguf)) return false;
  d->fc = find_matrix(f, H, 2 * H, names->fc, fc_in_gguf);
  d->token_norm = find_vector(f, H, names->token_norm, "blk.%d.nextn.enorm.weight");
  d->feature_norm = find_vector(f, H, names->feature_norm, "blk.%d.nextn.hnorm.weight");
  d->model.final_norm = find_vector(f, H, names->final_norm, "blk.%d.nextn.shared_head_norm.weight");
  d->token_norm.plus = d->feature_norm.plus = d->model.final_norm.plus = c->norm_plus;
  d->model.embed = find_own(f, c, names->embed, "blk.%d.nextn.embed_tokens.weight");
  d->model.unembed = find_own(f, c, names->unembed, "blk.%d.nextn.shared_head_head.weight");
  d->norm_output = true;
  return true;
}
