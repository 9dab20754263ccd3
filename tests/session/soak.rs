//! Memory does not grow with the number of chats and tokens, once a few texts are kept.

use tritloom::session::GenerateOptions;

use crate::setup::{Setup, generate, greedy};

#[test]
fn chats_that_fill_the_context_leave_no_memory_behind() {
    for setup in [Setup::default(), Setup::default().like_a_fast_card()] {
        let mut session = setup.context(64).small();
        // The KV cache grows for the texts that it keeps.
        for first in 0..12 {
            generate(&mut session, &[first, 2, 3], &greedy(100)).unwrap();
        }
        let before = session.compute().about().gpu_bytes;
        let mut tokens = 0;
        let mut chats = 0;
        while tokens < 200 {
            chats += 1;
            let prompt = [chats % 256, 5, 7, 9];
            tokens +=
                generate(&mut session, &prompt, &GenerateOptions::default()).unwrap().ids.len();
            // A generation that ends early.
            generate(&mut session, &prompt, &greedy(2)).unwrap();
        }
        assert!((2..100).contains(&chats), "{chats} chats");
        // Read-backs keep a few numbers for each batch that was in flight, and one buffer for each
        // draft length.
        let kept = session.compute().about().gpu_bytes.abs_diff(before);
        assert!(kept <= 512, "{kept} bytes");
    }
}
