// The number whose greatest value wins a draw.
fn perturbed(greatest: u32, key: u32, id: u32) -> f32 {
    return (value_of(key) - value_of(greatest)) * sampling.inverse_temperature + gumbel(id);
}

