// How much less than 1 the weight exp(-below / BINS_PER_NAT) is, for a distance within a bin. The
// unit is 1 / (BINS_PER_NAT * FINE), so that the sum over all tokens fits.
fn missing(below: f32) -> u32 {
    let nats = below / BINS_PER_NAT;
    return u32(FINE * below * (1.0 - nats * (0.5 - nats / 6.0)));
}
