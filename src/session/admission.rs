//! Makes a generation of a call: checks its prompt, and gives it a slot and room in the KV cache.

use std::rc::Rc;

use web_time::Instant;

use super::caches::Wanted;
use super::calls::{Call, Calls, Prompt};
use super::conversation::Conversation;
use super::generation::Generation;
use super::guess::Guess;
use super::loaded::Session;
use super::output::Output;
use super::room::{MAX_KEPT, MAX_SHARED};
use super::running::Running;
use super::stats::Stats;
use crate::chat::Channels;
use crate::error::Result;

impl Session {
    /// Gives a call its room, so that it runs. If something is wrong with the call, answers it with
    /// the error. If running generations have the room, puts the call back.
    pub(super) async fn begin<'a>(
        &mut self,
        calls: &Calls<'a>,
        call: Call<'a>,
        running: &mut Running<'a>,
    ) -> Result<()> {
        let asked = match self.checked(&call) {
            Ok(asked) => asked,
            Err(error) => {
                call.caller.answer(Err(error));
                return self.engine.check();
            }
        };
        let (ids, limit) = asked;
        let constraints = call.options.constraints.as_ref();
        let constraint = match constraints.map(|all| all.begin(call.prompt.begun())) {
            None => None,
            Some(Ok(constraint)) => Some(constraint),
            Some(Err(error)) => {
                call.caller.answer(Err(error));
                return Ok(());
            }
        };
        if limit == 0 {
            let stats = Stats { prompt_tokens: ids.len(), ..Stats::default() };
            call.caller.answer(Ok(stats));
            return Ok(());
        }
        let slots = 0..self.traits.slots;
        let is_free = |slot: &usize| running.all.iter().all(|other| other.slot != *slot);
        let Some(slot) = slots.into_iter().find(is_free) else {
            calls.put_back(call);
            return Ok(());
        };
        let tokenizer = Rc::clone(&self.tokenizer);
        let Call { prompt, options, on_token, caller } = call;
        running.serials += 1;
        let mut generation = Generation {
            sequence: 0,
            slot,
            prompt: ids.len(),
            reused: 0,
            from: 0,
            limit,
            output: Output::new(&tokenizer, &ids, Channels::answer(), &options.stop),
            constraint,
            mask: None,
            masked: false,
            is_free: false,
            guess: Guess::new(),
            guesses: false,
            stats: Stats { prompt_tokens: ids.len(), batch: 1, ..Stats::default() },
            started: Instant::now(),
            first: None,
            serial: running.serials,
            prompted: None,
            decodes: false,
            ahead: false,
            counted: false,
            drafter: None,
            in_flight: 0,
            drafted: 0,
            inserted: Vec::new(),
            options,
            on_token,
            caller,
        };
        let most = generation.most();
        let (wanted, bytes) = match running.all.is_empty() {
            true => (generation.wanted(ids.len()), MAX_KEPT),
            // A call that joins others gets all its room at once. So only the generation that began
            // alone may wait for another's room, and never two for each other's.
            false => (Wanted { least: most, most }, MAX_SHARED),
        };
        let asked = self.asked.take().filter(|asked| asked.prompt == ids);
        let placed = match self.place(&ids, wanted, bytes).await {
            Ok(placed) => placed,
            // The GPU is lost. The call is out of the queue, so it gets the error here, as running
            // calls do.
            Err(error) => {
                generation.fail(error.clone());
                return Err(error);
            }
        };
        let Some(id) = placed else {
            running.blocked = true;
            self.asked = asked;
            let Generation { options, on_token, caller, .. } = generation;
            calls.put_back(Call { prompt, options, on_token, caller });
            return Ok(());
        };
        let sequence = self.caches.running(id)?;
        let constraints = generation.options.constraints.as_ref();
        let is_constrained = constraints.is_some_and(|constraints| !constraints.is_free_at_first());
        // The model would begin its reasoning itself, but the constraint forbids that.
        let begins = asked.as_ref().map(Conversation::begins);
        let thinks = is_constrained && self.info.thinking && begins == Some(None);
        let open = tokenizer.special(Channels::OPEN).filter(|_| thinks);
        let channels = match &asked {
            // This is no chat: all that is generated continues the prompt.
            None => Channels::answer(),
            Some(conversation) if is_constrained => {
                conversation.constrained_channels(open.is_some())
            }
            Some(conversation) => conversation.channels(),
        };
        let calls = asked.as_ref().and_then(Conversation::calls);
        sequence.conversation = asked;
        generation.output = Output::new(&tokenizer, &ids, channels, &generation.options.stop);
        generation.output.read_calls(&tokenizer, calls);
        generation.sequence = id;
        generation.reused = sequence.filled;
        generation.from = sequence.filled;
        generation.stats.reused_tokens = sequence.filled;
        let n_vocab = self.info.vocab_size;
        let next = match open {
            Some(open) => generation.reason(&tokenizer, n_vocab, open),
            None => generation.follow(&tokenizer, n_vocab, None),
        };
        generation.masked = generation.mask.is_some();
        self.engine.use_slot(slot);
        self.engine.set_choosing(&generation.options.choosing(generation.masked));
        self.engine.compile_choosing().await;
        running.all.push(generation);
        self.go_on(running, running.all.len() - 1, next).await?;
        Ok(())
    }

    /// The tokens of a call's prompt, and how many tokens the call may generate.
    fn checked(&mut self, call: &Call<'_>) -> Result<(Vec<u32>, usize)> {
        self.check_answers()?;
        call.options.check(self.info.vocab_size)?;
        call.prompt.check()?;
        let ids = match &call.prompt {
            Prompt::Ids(ids) => ids.clone(),
            Prompt::Chat { messages, begun: None, thinking, tools } => {
                self.tools_prompt(messages, tools.as_ref(), *thinking)?
            }
            Prompt::Chat { messages, begun: Some(begun), thinking, .. } => {
                self.begun_prompt(messages, begun, *thinking)?
            }
        };
        self.check_prompt(&ids)?;
        // The keys and values of the last token need no room in the cache.
        let room = self.traits.n_ctx - ids.len() + 1;
        Ok((ids, call.options.max_tokens.unwrap_or(room).min(room)))
    }
}
