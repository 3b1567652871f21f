//! What MMTk wants to know of its virtual machine: threads, roots, and how to scan an object.

use crate::object::{Model, slots};
use crate::world::WORLD;
use mmtk::util::opaque_pointer::{OpaquePointer, VMMutatorThread, VMThread, VMWorkerThread};
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::slot::{SimpleSlot, UnimplementedMemorySlice};
use mmtk::vm::{
    ActivePlan, Collection, GCThreadContext, ReferenceGlue, RootsWorkFactory, Scanning,
    SlotVisitor, VMBinding,
};
use mmtk::{MMTK, Mutator, memory_manager};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The virtual machine.
#[derive(Default)]
pub(crate) struct Vm;

impl VMBinding for Vm {
    type VMObjectModel = Model;
    type VMScanning = Scan;
    type VMCollection = Collect;
    type VMActivePlan = Active;
    type VMReferenceGlue = NoReferences;
    type VMSlot = SimpleSlot;
    type VMMemorySlice = UnimplementedMemorySlice;

    const MIN_ALIGNMENT: usize = 8;
    const MAX_ALIGNMENT: usize = 8;
    const USE_ALLOCATION_OFFSET: bool = false;
}

static INSTANCE: OnceLock<&'static MMTK<Vm>> = OnceLock::new();
static MUTATOR: AtomicPtr<Mutator<Vm>> = AtomicPtr::new(std::ptr::null_mut());
/// The shadow stack as the collector sees it: set whenever the mutator may come to a collection.
static ROOTS: AtomicPtr<usize> = AtomicPtr::new(std::ptr::null_mut());
static ROOTS_LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Makes the instance known to the threads that MMTk starts.
pub(crate) fn publish(mmtk: &'static MMTK<Vm>) {
    assert!(INSTANCE.set(mmtk).is_ok(), "one instance only");
}

/// The name of the only mutator's thread.
pub(crate) fn mutator_thread() -> VMMutatorThread {
    let name = Address::from_ptr(&raw const ROOTS_LENGTH);
    VMMutatorThread(VMThread(OpaquePointer::from_address(name)))
}

/// Binds the only mutator; MMTk's threads may look at it only while it is parked.
pub(crate) fn bind(mmtk: &'static MMTK<Vm>) -> *mut Mutator<Vm> {
    memory_manager::initialize_collection(mmtk, mutator_thread().0);
    let mutator = Box::into_raw(memory_manager::bind_mutator(mmtk, mutator_thread()));
    MUTATOR.store(mutator, Ordering::Release);
    mutator
}

/// Shows the shadow stack to the collector.
#[inline(always)]
pub(crate) fn publish_roots(first: *mut usize, length: usize) {
    ROOTS.store(first, Ordering::Relaxed);
    ROOTS_LENGTH.store(length, Ordering::Relaxed);
}

/// Which threads there are.
pub(crate) struct Active;

impl ActivePlan<Vm> for Active {
    fn is_mutator(tls: VMThread) -> bool {
        tls == mutator_thread().0
    }

    fn mutator(_tls: VMMutatorThread) -> &'static mut Mutator<Vm> {
        // SAFETY: bound before any collection; MMTk asks only while the mutator is parked or in its own thread.
        unsafe { &mut *MUTATOR.load(Ordering::Acquire) }
    }

    fn mutators<'a>() -> Box<dyn Iterator<Item = &'a mut Mutator<Vm>> + 'a> {
        Box::new(std::iter::once(Self::mutator(mutator_thread())))
    }

    fn number_of_mutators() -> usize {
        1
    }
}

/// How to stop and start them.
pub(crate) struct Collect;

impl Collection<Vm> for Collect {
    fn stop_all_mutators<F>(_tls: VMWorkerThread, mut mutator_visitor: F)
    where
        F: FnMut(&'static mut Mutator<Vm>),
    {
        WORLD.await_stop();
        mutator_visitor(Active::mutator(mutator_thread()));
    }

    fn resume_mutators(_tls: VMWorkerThread) {
        WORLD.resume();
    }

    fn block_for_gc(_tls: VMMutatorThread) {
        WORLD.park();
    }

    fn spawn_gc_thread(_tls: VMThread, context: GCThreadContext<Vm>) {
        let GCThreadContext::Worker(worker) = context;
        std::thread::spawn(move || {
            let name = OpaquePointer::from_address(Address::from_ref(&*worker));
            let mmtk = INSTANCE.get().expect("published before collections start");
            memory_manager::start_worker(mmtk, VMWorkerThread(VMThread(name)), worker);
        });
    }
}

/// How to find references.
pub(crate) struct Scan;

impl Scanning<Vm> for Scan {
    #[inline(always)]
    fn scan_object<SV: SlotVisitor<SimpleSlot>>(
        _tls: VMWorkerThread,
        object: ObjectReference,
        visitor: &mut SV,
    ) {
        for slot in slots(object) {
            visitor.visit_slot(SimpleSlot::from_address(slot));
        }
    }

    fn scan_roots_in_mutator_thread(
        _tls: VMWorkerThread,
        _mutator: &'static mut Mutator<Vm>,
        mut factory: impl RootsWorkFactory<SimpleSlot>,
    ) {
        let first = Address::from_mut_ptr(ROOTS.load(Ordering::Relaxed));
        let roots = (0..ROOTS_LENGTH.load(Ordering::Relaxed))
            .map(|root| SimpleSlot::from_address(first + 8 * root))
            .collect();
        factory.create_process_roots_work(roots);
    }

    fn scan_vm_specific_roots(_tls: VMWorkerThread, _factory: impl RootsWorkFactory<SimpleSlot>) {}

    fn notify_initial_thread_scan_complete(_partial_scan: bool, _tls: VMWorkerThread) {}

    fn supports_return_barrier() -> bool {
        false
    }

    fn prepare_for_roots_re_scanning() {}
}

/// There are no weak references here.
pub(crate) struct NoReferences;

impl ReferenceGlue<Vm> for NoReferences {
    type FinalizableType = ObjectReference;

    fn clear_referent(_reference: ObjectReference) {
        unreachable!("no weak references")
    }

    fn get_referent(_object: ObjectReference) -> Option<ObjectReference> {
        unreachable!("no weak references")
    }

    fn set_referent(_reference: ObjectReference, _referent: ObjectReference) {
        unreachable!("no weak references")
    }

    fn enqueue_references(_references: &[ObjectReference], _tls: VMWorkerThread) {
        unreachable!("no weak references")
    }
}
